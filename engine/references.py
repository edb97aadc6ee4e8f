"""Local references of a JSON Schema (``#/$defs/…``) and what they point at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ("branches", "referred")

_CHOICES: tuple[str, ...] = ("anyOf", "oneOf", "allOf")
_MAX_BRANCHES = 200


def referred(root: Any, reference: str) -> Any:
    """Return what a local reference points at, or None where there is no such place (or it is elsewhere)."""
    if not reference.startswith("#"):
        return None
    found: Any = root
    for step in reference[1:].split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list):
            found = found[int(step)] if step.isascii() and step.isdigit() and int(step) < len(found) else None
        else:
            found = found.get(step) if isinstance(found, dict) else None
    return found


def branches(schema: Any, root: Any) -> Iterator[dict[str, Any]]:
    """Yield a schema and all that it refers to or offers as a choice at this place, each once, bounded in number."""
    waiting, seen = [schema], 0
    met: set[int] = set()
    while waiting and seen < _MAX_BRANCHES:
        branch = waiting.pop()
        if not isinstance(branch, dict) or id(branch) in met:
            continue
        met.add(id(branch))
        seen += 1
        yield branch
        if isinstance(branch.get("$ref"), str):
            waiting.append(referred(root, branch["$ref"]))
        for choice in _CHOICES:
            if isinstance(branch.get(choice), list):
                waiting.extend(branch[choice])
