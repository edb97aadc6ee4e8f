"""Keywords of a schema whose content is no schema: taken over where a validator can take them, else left out."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

__all__ = ("kinds_of", "plain_schema", "schema_texts", "shortened")

_TEXT_LIMIT = 200
_DEFAULT_LIMIT = 500
_PATTERN_LIMIT = 2000
_LARGEST = 2**63
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_COUNTS = (
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "minContains",
    "maxContains",
)
_ABOUT: tuple[str, ...] = ("title", "description")
_TEXTS = ("format", "contentEncoding", "contentMediaType")
_FLAGS = ("uniqueItems", "deprecated", "writeOnly")
_KINDS = frozenset({"string", "integer", "number", "boolean", "object", "array", "null"})
_MEANT = {
    "str": "string",
    "text": "string",
    "char": "string",
    "file": "string",
    "date": "string",
    "datetime": "string",
    "date-time": "string",
    "uuid": "string",
    "uri": "string",
    "url": "string",
    "byte": "string",
    "binary": "string",
    "int": "integer",
    "int32": "integer",
    "int64": "integer",
    "long": "integer",
    "float": "number",
    "double": "number",
    "decimal": "number",
    "bool": "boolean",
    "list": "array",
    "dict": "object",
    "map": "object",
}
"""What documents write where they mean a type of JSON."""


def plain_schema(node: dict[str, Any]) -> dict[str, Any]:
    """Return the keywords of a schema that hold no schema themselves, each in a form that validators take.

    Dropped are those that are none (``xml``, ``example``, ``discriminator``, ``x-…``) and those whose content is not
    what it has to be, a pattern that is no regular expression for one.
    """
    kinds = kinds_of(node.get("type"))
    written: dict[str, Any] = {}
    if kinds:
        written["type"] = kinds[0] if len(kinds) == 1 else kinds
    written |= {key: node[key] for key in _TEXTS if isinstance(node.get(key), str)}
    if node.get("type") == "file":
        written.setdefault("format", "binary")
    written |= {key: True for key in _FLAGS if node.get(key) is True}
    written |= {key: int(node[key]) for key in _COUNTS if _is_number(node.get(key)) and _is_count(node[key])}
    if isinstance(values := node.get("enum"), list) and values:
        written["enum"] = _values(values, kinds)
    if "const" in node:
        written["const"] = node["const"]
    if "default" in node and len(msgspec.json.encode(node["default"])) <= _DEFAULT_LIMIT:
        written["default"] = node["default"]
    if isinstance(pattern := node.get("pattern"), str) and len(pattern) <= _PATTERN_LIMIT and _is_regular(pattern):
        written["pattern"] = pattern
    return {**written, **_bounds(node), **schema_texts(node)}


def schema_texts(node: dict[str, Any]) -> dict[str, Any]:
    """Return a node's title and description, shortened, as far as it has them."""
    return {key: shortened(node[key]) for key in _ABOUT if isinstance(node.get(key), str) and node[key]}


def shortened(text: str, limit: int = _TEXT_LIMIT) -> str:
    """Return a text without the white space around it, cut to so many characters."""
    text = text.strip()
    return text if len(text) <= limit else text[: limit - 3].rstrip() + "..."


def kinds_of(stated: Any) -> list[str]:
    """Return the JSON types that a ``type`` names, each once; what nobody knows is left out."""
    listed = stated if isinstance(stated, list) else [stated]
    known = [kind.lower() if isinstance(kind, str) else "" for kind in listed]
    return list(dict.fromkeys(kind for each in known if (kind := _MEANT.get(each, each)) in _KINDS))


def _bounds(node: dict[str, Any]) -> dict[str, Any]:
    found = {key: node[key] for key in _NUMBERS if _is_number(node.get(key))}
    # Up to 3.0 the exclusive ones are flags that change the others' meaning.
    for flag, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if node.get(flag) is True and bound in found:
            found[flag] = found.pop(bound)
    step: Any = node.get("multipleOf")
    if _is_number(step) and step > 0:
        found["multipleOf"] = step
    return found


def _is_number(value: Any) -> bool:
    # Neither infinity nor what is no number is less; a whole number may be too large for a float.
    return type(value) in (int, float) and abs(value) < _LARGEST


def _is_count(value: float) -> bool:
    return value >= 0 and value == int(value)


def _values(values: list[Any], kinds: list[str]) -> list[Any]:
    """Return an enum's values as its type has them: YAML reads ``1`` and ``true`` as what they look like."""
    if "string" not in kinds or "number" in kinds or "integer" in kinds or "boolean" in kinds:
        return values
    return [
        value if isinstance(value, (str, dict, list)) or value is None else msgspec.json.encode(value).decode()
        for value in values
    ]


@lru_cache(maxsize=4096)
def _is_regular(pattern: str) -> bool:
    import jsonschema_rs

    try:
        jsonschema_rs.validator_for({"pattern": pattern})
    except ValueError:
        return False
    return True
