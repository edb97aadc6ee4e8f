"""References and combinations within one JSON Schema: what a place of it says once they are followed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

__all__ = ("branches", "object_schema", "referred", "united_schema")

_CHOICES: tuple[str, ...] = ("anyOf", "oneOf")
_COMBINING = frozenset({"anyOf", "oneOf", "allOf", "not", "enum", "if", "then", "else", "$ref"})
_MAX_BRANCHES = 200
_MAX_DEPTH = 16


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
    waiting: list[Any] = [schema]
    met: set[int] = set()
    while waiting and len(met) < _MAX_BRANCHES:
        branch = waiting.pop()
        if not isinstance(branch, dict) or id(branch) in met:
            continue
        met.add(id(branch))
        yield branch
        if isinstance(branch.get("$ref"), str):
            waiting.append(referred(root, branch["$ref"]))
        for keyword in (*_CHOICES, "allOf"):
            if isinstance(branch.get(keyword), list):
                waiting.extend(branch[keyword])


def united_schema(schema: dict[str, Any], parts: Iterable[Any]) -> dict[str, Any]:
    """Return one schema that says what a schema and the parts it must also fit say; its own keywords go first."""
    whole: dict[str, Any] = {}
    for part in (*parts, schema):
        if not isinstance(part, dict):
            continue
        for keyword, content in part.items():
            if keyword in ("properties", "$defs"):
                whole[keyword] = {**whole.get(keyword, {}), **(content if isinstance(content, dict) else {})}
            elif keyword == "required":
                known = whole.get(keyword, [])
                whole[keyword] = [*known, *(name for name in _listed(part, keyword) if name not in known)]
            else:
                whole[keyword] = content
    return whole


def object_schema(schema: dict[str, Any], root_schema: dict[str, Any], depth: int = 0) -> dict[str, Any]:
    """Return an object's schema without combinations at its top, which providers refuse there for the whole request.

    What all parts and alternatives declare becomes one list of properties; required is what each of them requires. The
    result takes at least what the schema takes; where nothing is combined, it is the schema itself.
    """
    if _COMBINING.isdisjoint(schema) or depth > _MAX_DEPTH:
        return schema
    own = {keyword: content for keyword, content in schema.items() if keyword not in _COMBINING}
    parts = [
        *_listed(schema, "allOf"),
        *filter(None, [referred(root_schema, schema["$ref"]) if _refers(schema) else None]),
    ]
    own = united_schema(own, [object_schema(part, root_schema, depth + 1) for part in parts if isinstance(part, dict)])
    for keyword in _CHOICES:
        choices = [
            object_schema(each, root_schema, depth + 1) for each in _listed(schema, keyword) if isinstance(each, dict)
        ]
        if choices:
            own = united_schema(own, [_common(choices)])
    return own


def _common(choices: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the properties that any of the choices has, of which those are required that all require."""
    properties: dict[str, Any] = {}
    for choice in choices:
        if isinstance(choice.get("properties"), dict):
            properties = {**choice["properties"], **properties}
    required = [
        name for name in _listed(choices[0], "required") if all(name in _listed(c, "required") for c in choices)
    ]
    return {"properties": properties, "required": required}


def _listed(schema: dict[str, Any], keyword: str) -> list[Any]:
    content = schema.get(keyword)
    return content if isinstance(content, list) else []


def _refers(schema: dict[str, Any]) -> bool:
    return isinstance(schema.get("$ref"), str)
