"""Arguments that fit an action's schema, for trying it out."""

from __future__ import annotations

from typing import Any, Final

__all__ = ("example_arguments", "example_config")

_WORD: Final = "example"
_DEPTH: Final = 4


def example_arguments(schema: dict[str, Any]) -> dict[str, Any]:
    """Return what must be given, each by its schema; a pattern, or a format, may ask for more than that."""
    properties = schema.get("properties", {})
    return {name: _value(properties.get(name, {}), _DEPTH) for name in schema.get("required", ())}


def example_config(requirements: dict[str, Any]) -> dict[str, Any]:
    """Return what a tool must be configured with, secrets included."""
    return {
        key: _value(entry, _DEPTH)
        for key, entry in requirements.items()
        if isinstance(entry, dict) and entry.get("required") and key != "*"
    }


def _value(schema: Any, depth: int) -> Any:
    if not isinstance(schema, dict) or depth == 0:
        return _WORD
    for key in ("default", "const"):
        if key in schema:
            return schema[key]
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type")
    match kind[0] if isinstance(kind, list) and kind else kind:
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return False
        case "array":
            return [_value(schema.get("items"), depth - 1)] * max(1, schema.get("minItems", 1))
        case "object":
            properties = schema.get("properties", {})
            return {name: _value(properties.get(name), depth - 1) for name in schema.get("required", ())}
        case _:
            return _text(schema)


def _text(schema: dict[str, Any]) -> str:
    if schema.get("format") == "uri" or "address" in str(schema.get("description", "")).lower():
        return "https://example.com/"
    least, most = schema.get("minLength", 0), schema.get("maxLength", len(_WORD) + 40)
    return _WORD.ljust(least, "x")[:most]
