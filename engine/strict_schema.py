"""JSON Schema in the strict form of OpenAI's functions: closed objects, all required, optional said as nullable."""

from __future__ import annotations

from typing import Any

from engine.references import branches, referred

__all__ = ("sparse_arguments", "strict_schema")

_KEPT = frozenset(
    {
        "type",
        "title",
        "description",
        "enum",
        "const",
        "pattern",
        "multipleOf",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "minItems",
        "maxItems",
    }
)
_FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"},
)
# Without these the schema would forbid what the tool takes; other constraints may go, since arguments are checked here.
_INEXPRESSIBLE = frozenset({"patternProperties", "prefixItems", "unevaluatedProperties", "dependentSchemas"})
_DEFS: tuple[str, ...] = ("$defs", "definitions")
_MAX_DEPTH = 10
_MAX_PROPERTIES = 5000
_WALKED = 100


class _NoStrictForm(Exception):
    """The schema takes what the strict form cannot say, e.g. an object with any keys."""


def strict_schema(schema: dict[str, Any]) -> dict[str, Any] | None:
    """Return a copy in strict form, or None where the schema takes what that form cannot say; changes nothing.

    Every object is closed and all its properties are required; what was optional may be null instead, which
    :func:`sparse_arguments` undoes. Local references stay, so recursive schemas keep their depth. Constraints that
    the form lacks are left to the check of the arguments.
    """
    writer = _Writer(schema)
    try:
        strict = writer.object(schema, 0)
        defs = {name: writer.node(each, 0) for name, each in writer.definitions()}
    except _NoStrictForm:
        return None
    return {**strict, "$defs": defs} if defs else strict


class _Writer:
    """Writes one schema anew."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._properties = 0

    def definitions(self) -> list[tuple[str, Any]]:
        named = [self._root.get(keyword) for keyword in _DEFS]
        return [item for each in named if isinstance(each, dict) for item in each.items()]

    def node(self, schema: Any, depth: int) -> dict[str, Any]:
        if not isinstance(schema, dict) or depth > _MAX_DEPTH or not _INEXPRESSIBLE.isdisjoint(schema):
            raise _NoStrictForm
        if isinstance(schema.get("$ref"), str):
            return self.reference(schema)
        parts = schema.get("allOf")
        if isinstance(parts, list):
            return self.node(_merged(schema, parts), depth)
        kinds = schema.get("type")
        if kinds == "object" or "properties" in schema:
            return self.object(schema, depth)
        node = {key: content for key, content in schema.items() if key in _KEPT}
        if schema.get("format") in _FORMATS:
            node["format"] = schema["format"]
        choices = schema.get("anyOf", schema.get("oneOf"))
        if isinstance(choices, list) and choices:
            node["anyOf"] = [self.node(choice, depth + 1) for choice in choices]
        if kinds == "array" or "items" in schema:
            node["items"] = self.node(schema.get("items"), depth + 1)
        elif isinstance(kinds, list) and not {"object", "array"}.isdisjoint(kinds):
            raise _NoStrictForm
        if not any(key in node for key in ("type", "enum", "const", "anyOf")):
            raise _NoStrictForm
        return node

    def reference(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Write a reference: to the root or a definition, and with nothing beside it."""
        reference: str = schema["$ref"]
        place = reference.removeprefix("#/definitions/").removeprefix("#/$defs/")
        if reference != "#" and (place == reference or "/" in place):
            raise _NoStrictForm
        if not isinstance(referred(self._root, reference), dict):
            raise _NoStrictForm
        node = {"$ref": reference.replace("#/definitions/", "#/$defs/", 1)}
        return {"anyOf": [node], "description": schema["description"]} if "description" in schema else node

    def object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        properties = schema.get("properties") or {}
        more = schema.get("additionalProperties")
        # An object of which nothing is said takes anything; only at the top that means: no parameters.
        free = not properties and depth > 0 and more is not False
        if more not in (None, False) or free or not isinstance(properties, dict) or schema.get("anyOf"):
            raise _NoStrictForm
        self._properties += len(properties)
        if depth > _MAX_DEPTH or self._properties > _MAX_PROPERTIES or not _INEXPRESSIBLE.isdisjoint(schema):
            raise _NoStrictForm
        listed = schema.get("required")
        required = listed if isinstance(listed, list) else ()
        written: dict[str, Any] = {}
        for name, each in properties.items():
            node = self.node(each, depth + 1)
            written[name] = node if name in required or _takes_null(each, self._root) else _nullable(node)
        kinds = schema.get("type")
        node = {key: schema[key] for key in ("title", "description") if key in schema}
        node["type"] = kinds if isinstance(kinds, list) and "object" in kinds else "object"
        return {**node, "properties": written, "required": list(written), "additionalProperties": False}


def _merged(schema: dict[str, Any], parts: list[Any]) -> dict[str, Any]:
    if len(parts) != 1 or not isinstance(parts[0], dict):
        raise _NoStrictForm
    return {**parts[0], **{key: content for key, content in schema.items() if key != "allOf"}}


def _nullable(node: dict[str, Any]) -> dict[str, Any]:
    kind = node.get("type")
    if isinstance(kind, str) and "const" not in node:
        enum = {"enum": [*node["enum"], None]} if "enum" in node else {}
        return {**node, "type": [kind, "null"], **enum}
    described = {"description": node["description"]} if "description" in node else {}
    inner = {key: content for key, content in node.items() if key != "description"}
    choices = inner["anyOf"] if inner.keys() == {"anyOf"} else [inner]
    return {"anyOf": [*choices, {"type": "null"}], **described}


def sparse_arguments(arguments: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments without each null that stands for leaving an optional property out, at any depth.

    A null that the schema takes, or that stands for a required property, stays. Where there is none to leave out,
    the same object is returned.
    """
    sparse: dict[str, Any] = _sparse(arguments, [schema], schema, 0)
    return sparse


def _sparse(value: Any, schemas: list[Any], root: dict[str, Any], depth: int) -> Any:
    kind = type(value)
    if depth > _WALKED or (kind is not dict and kind is not list):
        return value
    views = [branch for schema in schemas for branch in branches(schema, root)]
    if kind is list:
        items = [view["items"] for view in views if "items" in view]
        new = [_sparse(item, items, root, depth + 1) for item in value]
        return value if all(a is b for a, b in zip(new, value, strict=True)) else new
    sparse: dict[str, Any] = {}
    for key, item in value.items():
        holders = [view for view in views if isinstance(view.get("properties"), dict) and key in view["properties"]]
        declared = [view["properties"][key] for view in holders]
        if item is None and declared and not _is_required(key, holders) and not _take_null(declared, root):
            continue
        sparse[key] = _sparse(item, declared, root, depth + 1)
    unchanged = len(sparse) == len(value) and all(sparse[key] is item for key, item in value.items())
    return value if unchanged else sparse


def _is_required(key: str, holders: list[dict[str, Any]]) -> bool:
    return any(isinstance(listed := view.get("required"), list) and key in listed for view in holders)


def _take_null(schemas: list[Any], root: dict[str, Any]) -> bool:
    return any(_takes_null(schema, root) for schema in schemas)


def _takes_null(schema: Any, root: dict[str, Any]) -> bool:
    for branch in branches(schema, root):
        kinds = branch.get("type")
        if kinds == "null" or (isinstance(kinds, list) and "null" in kinds):
            return True
        enum = branch.get("enum")
        if (isinstance(enum, list) and None in enum) or branch.get("const", 0) is None:
            return True
    return False
