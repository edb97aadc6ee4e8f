"""The house rules that a machine can check, over syntax trees alone (CONTRIBUTING, House rules).

Each rule is a function from one parsed module to the violations found in it; ``RULES`` lists them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from tests.shape_names import imported_modules, string_tuple
from tests.shape_vocabulary import JSON_CONTENT, MUTABLE_CALLS, MUTATORS

__all__ = ("LAYERS", "ROOT", "RULES", "Source", "modules", "violations")

ROOT = Path(__file__).parent.parent
LAYERS: tuple[str, ...] = ("events", "projections", "engine")
"""The packages, lowest first: each may import itself and what stands before it."""

MAX_FILE = 400
MAX_FUNCTION = 40
MAX_PUBLIC_METHODS = 12
VAGUE_NAMES = frozenset({"utils", "util", "helpers", "helper", "base", "common", "misc", "tools_base"})
ONE_LOOP = frozenset({"asyncio", "trio", "uvloop"})
"""Event loops: only ``events/bridge.py`` may know that there is one in particular."""


class Source(msgspec.Struct, frozen=True):
    """One Python file: its path from the repository's root, its text, its tree."""

    path: Path
    text: str
    tree: ast.Module

    @classmethod
    def of(cls, path: str | Path, text: str) -> Source:
        """Parse a module's text."""
        return cls(Path(path), text, ast.parse(text))

    @property
    def package(self) -> str:
        """The top-level folder."""
        return self.path.parts[0]

    @property
    def ours(self) -> bool:
        """Whether it is part of the product, not of its tests, benchmarks or examples."""
        return self.package in LAYERS


Found = tuple[int, str]
Rule = Callable[[Source], Iterator[Found]]


def modules(root: Path = ROOT) -> list[Source]:
    """Return every Python file of the repository's own folders."""
    folders = (*LAYERS, "tests", "benchmarks", "examples")
    paths = sorted(path for folder in folders for path in (root / folder).rglob("*.py"))
    return [Source.of(path.relative_to(root), path.read_text()) for path in paths]


def violations(source: Source) -> list[str]:
    """Return every broken rule in one file as ``path:line: what``."""
    return [f"{source.path}:{line}: {what}" for rule in RULES for line, what in rule(source)]


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _classes(tree: ast.AST) -> Iterator[ast.ClassDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield node


def direction(source: Source) -> Iterator[Found]:
    """Rule 1: events imports nothing of ours, projections imports events, engine both; tests never."""
    if not source.ours:
        return
    above = (*LAYERS[LAYERS.index(source.package) + 1 :], "tests", "benchmarks", "examples")
    for line, module in imported_modules(source.tree):
        if module.partition(".")[0] in above:
            yield line, f"{source.package} may not import {module}"


def type_checking(source: Source) -> Iterator[Found]:
    """Rule 1: no TYPE_CHECKING escape."""
    for node in ast.walk(source.tree):
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None
        if name == "TYPE_CHECKING" and isinstance(node, ast.expr):
            yield node.lineno, "no TYPE_CHECKING: turn the import round, or move the noun"


def size(source: Source) -> Iterator[Found]:
    """Rule 2: files, functions and classes stay small."""
    lines = len(source.text.splitlines())
    if lines > MAX_FILE:
        yield MAX_FILE, f"{lines} lines, at most {MAX_FILE}: there are two nouns in this file"
    for function in _functions(source.tree):
        length = (function.end_lineno or function.lineno) - function.lineno + 1
        if length > MAX_FUNCTION:
            yield function.lineno, f"{function.name} has {length} lines, at most {MAX_FUNCTION}"
    for cls in _classes(source.tree):
        methods = {f.name for f in cls.body if isinstance(f, ast.FunctionDef | ast.AsyncFunctionDef)}
        public = [name for name in methods if not name.startswith("_")]
        if len(public) > MAX_PUBLIC_METHODS:
            yield cls.lineno, f"{cls.name} has {len(public)} public methods, at most {MAX_PUBLIC_METHODS}"


def file_names(source: Source) -> Iterator[Found]:
    """Rule 3: a file is named for its noun."""
    for part in source.path.with_suffix("").parts:
        if part in VAGUE_NAMES or part.rpartition("_")[2] in VAGUE_NAMES:
            yield 1, f"{part!r} names no noun"


def loose_dicts(source: Source) -> Iterator[Found]:
    """Rule 4: in a public signature or field a dict is loose unless its name says that JSON is the content."""
    if not source.ours:
        return
    for node in _public_definitions(source.tree.body):
        for line, name, annotation in _annotated(node):
            if annotation is not None and _is_loose(annotation) and not _says_json(name):
                yield (
                    line,
                    f"{name}: {ast.unparse(annotation)} is a loose dict; use a Struct, or a name that says it is JSON",
                )


def _public_definitions(
    body: list[ast.stmt],
) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.AnnAssign]:
    """Yield the public functions, methods and fields; what is private crosses no border."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if not node.name.startswith("_") or node.name in ("__init__", "__call__"):
                yield node
        elif isinstance(node, ast.ClassDef):
            if not node.name.startswith("_"):
                yield from _public_definitions(node.body)
        elif isinstance(node, ast.AnnAssign) and not ast.unparse(node.target).startswith("_"):
            yield node


def _annotated(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.AnnAssign,
) -> Iterator[tuple[int, str, ast.expr | None]]:
    if isinstance(node, ast.AnnAssign):
        yield node.lineno, ast.unparse(node.target), node.annotation
        return
    spec = node.args
    for argument in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs):
        yield argument.lineno, argument.arg, argument.annotation
    yield node.lineno, node.name, node.returns


def _says_json(name: str) -> bool:
    return name in JSON_CONTENT or not JSON_CONTENT.isdisjoint(name.lower().split("_"))


def _is_loose(annotation: ast.expr) -> bool:
    """Whether it holds ``dict`` bare, or a mapping of text to Any or object."""
    text = ast.unparse(annotation)
    if re.search(r"\b(dict|Dict)\b(?!\[)", text):
        return True
    return bool(re.search(r"\b(dict|Dict|Mapping|MutableMapping)\[str, (\w+\.)?(Any|object)\]", text))


def one_loop(source: Source) -> Iterator[Found]:
    """Rule 12: AnyIO only; what must know an event loop is in ``events/bridge.py``. Tests may stage a foreign loop."""
    for line, module in imported_modules(source.tree):
        top = module.partition(".")[0]
        if top in ONE_LOOP and source.ours and source.path != Path("events/bridge.py"):
            yield line, f"{top} is imported; AnyIO only, or events/bridge.py"
        if top == "aiosqlite":
            yield line, "aiosqlite loses cancelled statements; use the log's writer and readers"


def surface(source: Source) -> Iterator[Found]:
    """Rule 15: every importable module lists what is public in a tuple; ``__init__.py`` only re-exports."""
    if not source.ours:
        return
    listed = string_tuple(source.tree, "__all__")
    if listed is None:
        yield 1, "no tuple __all__ of plain names"
    elif len(set(listed)) != len(listed):
        yield 1, "__all__ names something twice"
    if source.path.name == "__init__.py":
        for node in source.tree.body:
            if not _is_re_export(node):
                yield node.lineno, "__init__.py only re-exports"


def _is_re_export(node: ast.stmt) -> bool:
    if isinstance(node, ast.Import | ast.ImportFrom):
        return True
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True
    return isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["__all__"]


def mock_patch(source: Source) -> Iterator[Found]:
    """Rule 16: fakes over mocks."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ImportFrom) and node.module in ("unittest.mock", "mock"):
            if any(alias.name in ("patch", "*") for alias in node.names):
                yield node.lineno, "unittest.mock.patch is banned: write a fake"
        elif isinstance(node, ast.Attribute) and node.attr == "patch" and "mock" in ast.unparse(node.value):
            yield node.lineno, "unittest.mock.patch is banned: write a fake"


def sleeping_tests(source: Source) -> Iterator[Found]:
    """Rule 16: a test waits for something, never for time; the tools it stages (nested functions) may sleep."""
    if source.package != "tests" or "crash" in source.path.parts:
        return
    for function in _functions(source.tree):
        if function.name.startswith("test_"):
            for node in _own_nodes(function):
                if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".sleep") and not _is_zero(node):
                    yield node.lineno, f"{function.name} sleeps; wait for what it needs"


def _own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(function):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            yield child
            yield from _own_nodes(child)


def _is_zero(call: ast.Call) -> bool:
    return [ast.unparse(argument) for argument in call.args] == ["0"]


def module_state(source: Source) -> Iterator[Found]:
    """No module-level mutable state; a private upper-case table that the module itself never changes may be a dict."""
    if not source.ours:
        return
    changed = set(_changed_names(source.tree))
    for line, name, value in _module_values(source.tree):
        table = (
            isinstance(value, ast.Dict | ast.DictComp) and re.fullmatch(r"_[A-Z0-9_]+", name) and name not in changed
        )
        if name != "__all__" and _is_mutable(value) and not table:
            yield line, f"{name} is mutable module state; use a tuple, frozenset, MappingProxyType, or an object"
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Global):
            yield node.lineno, f"global {', '.join(node.names)}: module state"


def _module_values(tree: ast.Module) -> Iterator[tuple[int, str, ast.expr]]:
    for node in tree.body:
        if isinstance(node, ast.Assign):
            yield from ((node.lineno, ast.unparse(target), node.value) for target in node.targets)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            yield node.lineno, ast.unparse(node.target), node.value


def _is_mutable(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return ast.unparse(value.func).rpartition(".")[2].partition("[")[0] in MUTABLE_CALLS
    return isinstance(value, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp)


def _changed_names(tree: ast.Module) -> Iterator[str]:
    """Yield the names that something in the module changes in place."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
            yield ast.unparse(node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS:
            yield ast.unparse(node.func.value)
        elif isinstance(node, ast.AugAssign):
            yield ast.unparse(node.target)


RULES: tuple[Rule, ...] = (
    direction,
    type_checking,
    size,
    file_names,
    loose_dicts,
    one_loop,
    surface,
    mock_patch,
    sleeping_tests,
    module_state,
)
