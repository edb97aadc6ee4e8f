"""What a module imports and what it lists, read off its syntax tree; and the import graph of ours."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

__all__ = ("cycles", "imported_modules", "imported_names", "module_name", "string_tuple")


def module_name(path: Path) -> str:
    """Return the dotted name of a file: ``events/log.py`` is ``events.log``, a package's ``__init__`` the package."""
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_modules(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield (line, module) of every import, those inside functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, "." * node.level + (node.module or "")


def imported_names(tree: ast.AST) -> Iterator[tuple[int, str, str]]:
    """Yield (line, module, name) of every ``from module import name``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.lineno, node.module, alias.name) for alias in node.names)


def string_tuple(tree: ast.Module, name: str) -> tuple[str, ...] | None:
    """Return a module-level tuple of string literals; None if there is none of that form."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == [name]:
            try:
                value = ast.literal_eval(node.value)
            except ValueError:
                return None
            if isinstance(value, tuple) and all(isinstance(item, str) for item in value):
                return value
    return None


def cycles(graph: Mapping[str, Iterable[str]]) -> list[tuple[str, ...]]:
    """Return the groups of modules that import each other in a circle, each sorted."""
    reach = {module: _reachable(graph, module) for module in graph}
    groups = {
        tuple(sorted(m for m in reach[module] if module in reach.get(m, ())))
        for module in graph
        if module in reach[module]
    }
    return sorted(groups)


def _reachable(graph: Mapping[str, Iterable[str]], start: str) -> set[str]:
    seen: set[str] = set()
    waiting = list(graph.get(start, ()))
    while waiting:
        module = waiting.pop()
        if module not in seen:
            seen.add(module)
            waiting.extend(graph.get(module, ()))
    return seen
