"""JSON Schema in the subset that Google's function declarations take."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from engine.references import object_schema, referred, united_schema

__all__ = ("google_schema",)

_OF_TYPE: MappingProxyType[str, tuple[str, ...]] = MappingProxyType(
    {
        "string": ("format", "minLength", "maxLength", "pattern"),
        "integer": ("format", "minimum", "maximum"),
        "number": ("format", "minimum", "maximum"),
        "boolean": (),
        "array": ("items", "minItems", "maxItems"),
        "object": ("properties", "minProperties", "maxProperties"),
    }
)
_FORMATS = MappingProxyType(
    {
        "string": frozenset({"enum", "date-time"}),
        "integer": frozenset({"int32", "int64"}),
        "number": frozenset({"float", "double"}),
    }
)
_DESCRIBING = ("title", "description")
_ANYTHING = "object"
_MAX_DEPTH = 16
_MAX_NODES = 2000
_ROUNDS = 2


def google_schema(schema: dict[str, Any]) -> dict[str, Any] | None:
    """Return a copy in Google's subset, or None for an object without properties (which Google refuses; leave it out).

    Every node has a type, or is a union (``anyOf``) and nothing else. Local references are put in place, recursive
    ones down to a bounded depth and size, beyond which anything is taken; null in a union becomes ``nullable``; what
    only strings may have (``enum``) is told in the description of others; unsupported keywords are dropped.
    Properties are never dropped, whatever their names.
    """
    top = object_schema(schema, schema)
    if not isinstance(top.get("properties"), dict) or not top["properties"]:
        return None
    return _Writer(schema).node({**top, "type": "object"})


class _Writer:
    """Writes one schema anew; what goes beyond the bounds becomes an object of any shape."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        # A few definitions that all refer to each other would fill any memory.
        self._left = _MAX_NODES

    def node(self, schema: Any, depth: int = 0, seen: tuple[str, ...] = ()) -> dict[str, Any]:
        self._left -= 1
        if depth > _MAX_DEPTH or self._left < 0:
            return {"type": _ANYTHING}
        schema, seen = self._resolved(schema if isinstance(schema, dict) else {}, seen)
        kinds, nullable = _kinds(schema)
        if len(kinds) == 1:
            return self._typed(schema, kinds[0], nullable, depth, seen)
        choices = [self.node(choice, depth + 1, seen) for choice in _choices(schema, kinds)]
        return _union(choices, schema, nullable)

    def _resolved(self, schema: dict[str, Any], seen: tuple[str, ...]) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Follow references, unite what must fit together, and unwrap a union of one and null."""
        for _ in range(_MAX_DEPTH):
            reference = schema.get("$ref")
            rest = {key: content for key, content in schema.items() if key not in ("$ref", "allOf")}
            if isinstance(reference, str):
                # Twice round a cycle is enough to show its shape.
                target = referred(self._root, reference) if seen.count(reference) < _ROUNDS else None
                seen = (*seen, reference)
                schema = united_schema(rest, [target if isinstance(target, dict) else {"type": _ANYTHING}])
            elif isinstance(parts := schema.get("allOf"), list):
                resolved: list[dict[str, Any]] = []
                for part in parts:
                    one, seen = self._resolved(part, seen) if isinstance(part, dict) else ({}, seen)
                    resolved.append(one)
                schema = united_schema(rest, resolved)
            elif (only := _only_choice(schema)) is not None:
                schema = only
            else:
                break
        return schema, seen

    def _typed(
        self, schema: dict[str, Any], kind: str, nullable: bool, depth: int, seen: tuple[str, ...]
    ) -> dict[str, Any]:
        node: dict[str, Any] = {"type": kind}
        for keyword in _DESCRIBING:
            if isinstance(schema.get(keyword), str):
                node[keyword] = schema[keyword]
        if nullable:
            node["nullable"] = True
        for keyword in _OF_TYPE[kind]:
            content = schema.get(keyword)
            if keyword == "properties" and isinstance(content, dict):
                node[keyword] = {name: self.node(each, depth + 1, seen) for name, each in content.items()}
            elif keyword == "items":
                node[keyword] = self._items(schema, depth, seen)
            elif keyword != "properties" and _fits(kind, keyword, content):
                node[keyword] = content
        required = schema.get("required")
        if "properties" in node and isinstance(required, list):
            kept = [name for name in required if name in node["properties"]]
            node |= {"required": kept} if kept else {}
        return _with_values(node, schema)

    def _items(self, schema: dict[str, Any], depth: int, seen: tuple[str, ...]) -> dict[str, Any]:
        items = schema.get("prefixItems", schema.get("items"))
        if isinstance(items, list):
            items = {"anyOf": items} if len(items) > 1 else items[0] if items else None
        return self.node(items, depth + 1, seen) if isinstance(items, dict) else {"type": "string"}


def _only_choice(schema: dict[str, Any]) -> dict[str, Any] | None:
    """Return a union of one, perhaps with null, as that one; None for any other schema."""
    for keyword in ("anyOf", "oneOf"):
        choices = schema.get(keyword)
        if not isinstance(choices, list):
            continue
        real = [choice for choice in choices if isinstance(choice, dict) and choice.get("type") != "null"]
        rest = {key: content for key, content in schema.items() if key != keyword}
        if isinstance(schema.get("type"), str) or isinstance(schema.get("properties"), dict):
            # Beside a type, the choices can only narrow it, and there is no room for that.
            return rest
        if len(real) <= 1:
            nullable = {"nullable": True} if len(choices) > len(real) else {}
            return united_schema({**rest, **nullable}, real)
    return None


def _kinds(schema: dict[str, Any]) -> tuple[list[str], bool]:
    """Return the types a schema takes, null apart; none where it is a union of schemas."""
    stated = schema.get("type")
    nullable = schema.get("nullable") is True or stated == "null"
    values = _values(schema)
    nullable = nullable or None in values
    if isinstance(stated, list):
        nullable = nullable or "null" in stated
        return [kind for kind in stated if kind in _OF_TYPE] or ["string"], nullable
    if isinstance(stated, str) and stated in _OF_TYPE:
        return [stated], nullable
    if _stated(schema):
        return [], nullable
    return _kinds_of_values(schema, values), nullable


def _kinds_of_values(schema: dict[str, Any], values: list[Any]) -> list[str]:
    if "properties" in schema or "additionalProperties" in schema:
        return ["object"]
    if "items" in schema or "prefixItems" in schema:
        return ["array"]
    samples = values or ([schema["default"]] if "default" in schema else [])
    kinds = dict.fromkeys(_kind_of(value) for value in samples if value is not None)
    return list(kinds) or ["string"]


def _kind_of(value: Any) -> str:
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case list():
            return "array"
        case dict():
            return "object"
    return "string"


def _stated(schema: dict[str, Any]) -> list[Any]:
    choices = [schema.get(keyword) for keyword in ("anyOf", "oneOf")]
    return next((each for each in choices if isinstance(each, list)), [])


def _choices(schema: dict[str, Any], kinds: list[str]) -> list[Any]:
    if not kinds:
        return [each for each in _stated(schema) if not (isinstance(each, dict) and each.get("type") == "null")]
    shared = {key: content for key, content in schema.items() if key not in ("type", "nullable", *_DESCRIBING)}
    values = _values(schema)
    return [
        {**shared, "type": kind, **({"enum": [v for v in values if _kind_of(v) == kind]} if values else {})}
        for kind in kinds
    ]


def _union(choices: list[dict[str, Any]], schema: dict[str, Any], nullable: bool) -> dict[str, Any]:
    """Return a union with nothing beside it, which the API refuses: what is said of it is said of each choice."""
    nullable = nullable or any(isinstance(each, dict) and each.get("type") == "null" for each in _stated(schema))
    described = {key: schema[key] for key in _DESCRIBING if isinstance(schema.get(key), str)}
    shared = {**described, "nullable": True} if nullable else described
    return {"anyOf": [choice if "anyOf" in choice else {**shared, **choice} for choice in choices]}


def _values(schema: dict[str, Any]) -> list[Any]:
    if "const" in schema:
        return [schema["const"]]
    enum = schema.get("enum")
    return enum if isinstance(enum, list) else []


def _with_values(node: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Add the values a node may have: strings as ``enum``, others, which the API refuses there, to the description."""
    values = [value for value in _values(schema) if value is not None]
    if node["type"] == "string":
        texts = [value for value in values if isinstance(value, str) and value]
        return {**node, "enum": texts} if texts else node
    if not values or node["type"] in ("array", "object"):
        return node
    listed = ", ".join(str(value).lower() if isinstance(value, bool) else str(value) for value in values)
    described = f"{node.get('description', '')} (one of: {listed})".strip()
    return {**node, "description": described}


def _fits(kind: str, keyword: str, content: Any) -> bool:
    match keyword:
        case "format":
            return isinstance(content, str) and content in _FORMATS.get(kind, ())
        case "pattern":
            return isinstance(content, str)
    return isinstance(content, (int, float)) and not isinstance(content, bool)
