"""JSON Schema in the subset that Google's function declarations take."""

from __future__ import annotations

from typing import Any

__all__ = ("google_schema",)

_KEPT = frozenset(
    {
        "type",
        "format",
        "title",
        "description",
        "nullable",
        "enum",
        "items",
        "properties",
        "required",
        "anyOf",
        "minItems",
        "maxItems",
        "minProperties",
        "maxProperties",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "pattern",
    }
)
_FORMATS = frozenset({"enum", "date-time", "float", "double", "int32", "int64"})
_MAX_DEPTH = 8
_MAX_NODES = 2000


def google_schema(schema: dict[str, Any]) -> dict[str, Any] | None:
    """Return a copy in Google's subset, or None for an object without properties (which Google refuses; leave it out).

    Local references are put in place, recursive ones down to a bounded depth and size; null in a union becomes
    ``nullable``; other unsupported keywords are dropped. Properties are never dropped, whatever their names.
    """
    if not schema.get("properties"):
        return None
    return _Inliner(schema).node(schema)


class _Inliner:
    """Copies one schema; what goes beyond the bounds becomes an object of any shape."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        # A few definitions that all refer to each other would fill any memory.
        self._left = _MAX_NODES

    def node(self, schema: Any, depth: int = 0, seen: tuple[str, ...] = ()) -> dict[str, Any]:
        self._left -= 1
        if not isinstance(schema, dict) or depth > _MAX_DEPTH or self._left < 0:
            return {"type": "object"}
        schema, seen = self._resolved(schema, seen)
        node: dict[str, Any] = {}
        for keyword, content in _without_null(_united(schema)).items():
            if keyword == "properties" and isinstance(content, dict):
                node[keyword] = {key: self.node(item, depth + 1, seen) for key, item in content.items()}
            elif keyword == "items":
                node[keyword] = self.node(content, depth + 1, seen)
            elif keyword == "anyOf" and isinstance(content, list):
                node[keyword] = [self.node(item, depth + 1, seen) for item in content]
            elif keyword in _KEPT and _fits(keyword, content):
                node[keyword] = content
        return _typed(node)

    def _resolved(self, schema: dict[str, Any], seen: tuple[str, ...]) -> tuple[dict[str, Any], tuple[str, ...]]:
        while isinstance(schema.get("$ref"), str):
            reference = schema["$ref"]
            rest = {key: content for key, content in schema.items() if key != "$ref"}
            # Twice round a cycle is enough to show its shape.
            target = _lookup(self._root, reference) if seen.count(reference) < 2 else None
            seen = (*seen, reference)
            schema = {**target, **rest} if isinstance(target, dict) else {"type": "object", **rest}
        return schema, seen


def _lookup(root: dict[str, Any], reference: str) -> Any:
    if not reference.startswith("#"):
        return None
    found: Any = root
    for step in reference.lstrip("#").strip("/").split("/"):
        if step:
            found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
    return found


def _united(schema: dict[str, Any]) -> dict[str, Any]:
    if "const" in schema:
        schema = {**schema, "enum": [schema["const"]]}
    if "oneOf" in schema and "anyOf" not in schema:
        schema = {**schema, "anyOf": schema["oneOf"]}
    parts = schema.get("allOf")
    if isinstance(parts, list) and all(isinstance(part, dict) for part in parts):
        merged: dict[str, Any] = {}
        for part in parts:
            merged |= part
        schema = {**merged, **schema}
    return schema


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Say null as ``nullable``, and a union of one as that one."""
    kinds = schema.get("type")
    if isinstance(kinds, list):
        schema = {key: item for key, item in schema.items() if key != "type"} | _one_type(kinds)
    choices = schema.get("anyOf")
    if isinstance(choices, list):
        real = [choice for choice in choices if not (isinstance(choice, dict) and choice.get("type") == "null")]
        if len(real) < len(choices):
            schema = {**schema, "anyOf": real, "nullable": True}
        if len(real) == 1 and isinstance(real[0], dict):
            schema = {**real[0], **{key: item for key, item in schema.items() if key != "anyOf"}}
    return schema


def _one_type(kinds: list[Any]) -> dict[str, Any]:
    named = [kind for kind in kinds if kind != "null"]
    nullable = {"nullable": True} if len(named) < len(kinds) else {}
    if len(named) == 1:
        return {"type": named[0], **nullable}
    return {"anyOf": [{"type": kind} for kind in named], **nullable} if named else nullable


def _fits(keyword: str, content: Any) -> bool:
    if keyword == "enum":
        return isinstance(content, list) and bool(content) and all(isinstance(item, str) for item in content)
    if keyword == "format":
        return content in _FORMATS
    if keyword == "required":
        return isinstance(content, list) and bool(content)
    return True


def _typed(node: dict[str, Any]) -> dict[str, Any]:
    if "anyOf" in node:
        # The API allows nothing beside a union but its description.
        return {key: item for key, item in node.items() if key in ("anyOf", "description", "nullable")}
    if "type" not in node:
        node["type"] = "array" if "items" in node else "string" if "enum" in node else "object"
    if node["type"] == "array":
        node.setdefault("items", {"type": "string"})
    if "required" in node:
        node["required"] = [name for name in node["required"] if name in node.get("properties", {})]
        if not node["required"]:
            del node["required"]
    return node
