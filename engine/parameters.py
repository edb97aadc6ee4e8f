"""An action's parameters as declared: one JSON Schema, with the owner's values taken out of it (BEHAVIOUR 17-21).

Two dialects are read. Plain JSON Schema passes through whole. The other says more per property: ``required: true``,
``filled_by_llm: false`` (the model neither sees nor sends it) and ``value`` (fixed where hidden, else a default), and
may spread the properties over groups of a request.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec

from engine.references import object_schema

__all__ = ("GROUPS", "ActionGroup", "Parameters", "declared_parameters")

GROUPS: tuple[str, ...] = ("query_params", "headers", "body", "parameters")
"""Where a request's properties may go, in the order in which they are shown."""

_SCALARS = ("string", "integer", "number", "boolean")
_USUAL = frozenset({"type", "properties", "required"})
_NESTING = frozenset({"properties", "items", "anyOf", "oneOf", "allOf", "$defs", "definitions"})


class ActionGroup(msgspec.Struct, frozen=True):
    """One part of a request.

    :ivar visible: names the model may send
    :ivar presets: values used where the model sends none
    :ivar pinned: values that always apply; the model never sees their names
    """

    name: str
    visible: tuple[str, ...]
    presets: dict[str, Any] = {}
    pinned: dict[str, Any] = {}


class Parameters(msgspec.Struct, frozen=True):
    """What an action takes.

    :ivar schema: the whole JSON Schema in its standard form, hidden and pinned properties included
    :ivar shown: the part of it that the model sees; the same object where nothing is hidden or combined at its top
    :ivar hidden: names the model does not see, the pinned ones included
    :ivar groups: the parts of a request, for actions that are one; empty for all others
    """

    schema: dict[str, Any]
    shown: dict[str, Any]
    presets: dict[str, Any] = {}
    pinned: dict[str, Any] = {}
    hidden: frozenset[str] = frozenset()
    groups: tuple[ActionGroup, ...] = ()


class _Owner(msgspec.Struct, frozen=True):
    """What the row's settings say of one action's properties; it goes before what the metadata says."""

    presets: dict[str, Any]
    pinned: dict[str, Any]
    hidden: frozenset[str]

    def value_of(self, key: str, stated: Any) -> Any:
        if key in self.pinned:
            return self.pinned[key]
        return self.presets.get(key, stated)


class _Reading(msgspec.Struct):
    """What has been read so far, over all groups; dicts without values serve as ordered sets."""

    properties: dict[str, Any] = {}
    required: dict[str, None] = {}
    rest: dict[str, Any] = {}
    hidden: set[str] = set()
    groups: list[ActionGroup] = []


def declared_parameters(
    metadata: dict[str, Any], *, presets: dict[str, Any], pinned: dict[str, Any], hidden: Collection[str]
) -> Parameters:
    """Read the parameter groups of one action's metadata together with the owner's settings for it; changes neither.

    A value of null, and an empty text where the property's type is not text, is a value the owner never set; so is
    the empty text that stored actions are stamped with, beside ``filled_by_llm: true``.
    """
    owner = _Owner(presets, pinned, frozenset(hidden)) if presets or pinned or hidden else None
    reading = _Reading()
    for name in GROUPS:
        group = metadata.get(name)
        if isinstance(group, dict):
            reading.groups.append(_read_group(name, group, owner, reading))
            if not _USUAL.issuperset(group):
                _keep_rest(group, reading.rest)
    return _summary(reading, owner)


def _read_group(name: str, definition: dict[str, Any], owner: _Owner | None, reading: _Reading) -> ActionGroup:
    stated = definition.get("properties")
    listed = _texts(definition["required"]) if "required" in definition else ()
    known, required = reading.properties, reading.required
    visible: list[str] = []
    presets: dict[str, Any] = {}
    pinned: dict[str, Any] = {}
    for key, declared in stated.items() if isinstance(stated, dict) else ():
        clean, is_hidden, is_required, value = _read_property(declared)
        if owner is not None:
            is_hidden = is_hidden or key in owner.pinned or key in owner.hidden
            value = owner.value_of(key, value)
        if is_hidden:
            reading.hidden.add(key)
            known.setdefault(key, clean)
            if value is None:
                # A hidden property nobody gives a value to can never be sent, so it is not asked for.
                continue
            pinned[key] = value
        else:
            visible.append(key)
            known[key] = clean
            if value is not None:
                presets[key] = value
        if is_required or key in listed:
            required[key] = None
    if listed:
        # Names that are required but not described here stay: the schema may describe them elsewhere.
        required.update(dict.fromkeys([item for item in listed if item not in known]))
    return ActionGroup(name, tuple(visible), presets, pinned)


def _texts(listed: Any) -> list[str]:
    return [item for item in listed if isinstance(item, str)] if isinstance(listed, list) else []


def _keep_rest(definition: dict[str, Any], rest: dict[str, Any]) -> None:
    for keyword, content in definition.items():
        if keyword in ("properties", "required", "type"):
            continue
        known = rest.get(keyword)
        rest[keyword] = {**known, **content} if isinstance(known, dict) and isinstance(content, dict) else content


def _read_property(declared: Any) -> tuple[Any, bool, bool, Any]:
    """Return (schema without flags, hidden, required, value or None)."""
    if type(declared) is not dict:
        return declared, False, False, None
    if (kind := declared.get("type")) not in _SCALARS and not (kind == "array" and _has_flat_items(declared)):
        declared = _standard(declared)
    if not ("filled_by_llm" in declared or "required" in declared or "value" in declared):
        return declared, False, False, None
    clean = declared.copy()
    shown = clean.pop("filled_by_llm", None)
    value = clean.pop("value", None)
    required = clean.pop("required", None)
    # A list belongs to an object inside; true and false speak of this property.
    if required and required is not True and type(required) is list:
        clean["required"] = required
    if value == "" and (shown is True or not _takes_text(clean)):
        value = None
    return clean, shown is False, required is True, value


def _has_flat_items(schema: dict[str, Any]) -> bool:
    """Tell whether an array holds nothing but scalars, so that there is nothing inside to look at: most arrays do."""
    items = schema.get("items")
    return type(items) is dict and items.get("type") in _SCALARS and "anyOf" not in schema and "allOf" not in schema


def _takes_text(schema: dict[str, Any]) -> bool:
    kind = schema.get("type", "string")
    return "string" in kind if isinstance(kind, (str, list)) else True


def _standard(schema: Any, depth: int = 0) -> Any:
    """Return the schema with ``required: true`` inside nested properties moved to where the standard has it."""
    if type(schema) is not dict or depth > 100 or _NESTING.isdisjoint(schema):
        return schema
    changed: dict[str, Any] = {}
    for key, content in schema.items():
        if key in _NESTING and (new := _standard_keyword(key, content, depth)) is not content:
            changed[key] = new
    properties = schema.get("properties")
    if type(properties) is dict:
        flagged = [key for key, item in properties.items() if type(item) is dict and item.get("required") is True]
        if flagged:
            listed = schema.get("required")
            changed["required"] = list(dict.fromkeys([*_texts(listed), *flagged]))
    return {**schema, **changed} if changed else schema


def _standard_keyword(keyword: str, content: Any, depth: int) -> Any:
    if keyword == "items":
        return _standard(content, depth + 1)
    if isinstance(content, list):
        new = [_standard(item, depth + 1) for item in content]
        return content if all(a is b for a, b in zip(content, new, strict=True)) else new
    if not isinstance(content, dict):
        return content
    named = {key: _unflagged(_standard(item, depth + 1)) for key, item in content.items()}
    return content if all(named[key] is item for key, item in content.items()) else named


def _unflagged(schema: Any) -> Any:
    if isinstance(schema, dict) and isinstance(schema.get("required"), bool):
        return {key: content for key, content in schema.items() if key != "required"}
    return schema


def _summary(reading: _Reading, owner: _Owner | None) -> Parameters:
    schema = {"type": "object", "properties": reading.properties, "required": list(reading.required)}
    shown = schema
    if reading.rest:
        schema |= reading.rest
        shown = object_schema(schema, schema)
    if owner is None and len(reading.groups) == 1 and reading.groups[0].name == "parameters":
        (group,) = reading.groups
        shown = _without(shown, reading.hidden) if reading.hidden else shown
        return Parameters(schema, shown, group.presets, group.pinned, frozenset(reading.hidden))
    hidden = frozenset(reading.hidden.difference(*[group.visible for group in reading.groups]))
    if owner is not None:
        hidden |= owner.hidden | owner.pinned.keys()
    presets: dict[str, Any] = {}
    pinned: dict[str, Any] = {}
    for group in reading.groups:
        presets.update(group.presets)
        # What one part of a request pins may be the model's to send in another.
        pinned.update({key: value for key, value in group.pinned.items() if key in hidden})
    if owner is not None:
        _keep_undeclared(owner, reading, hidden, presets, pinned)
    is_request = any(group.name != "parameters" for group in reading.groups)
    groups = tuple(reading.groups) if is_request else ()
    return Parameters(schema, _without(shown, hidden) if hidden else shown, presets, pinned, hidden, groups)


def _keep_undeclared(
    owner: _Owner, reading: _Reading, hidden: frozenset[str], presets: dict[str, Any], pinned: dict[str, Any]
) -> None:
    """Keep what the owner sets without the tool describing it: it still goes to the tool."""
    for key, value in owner.presets.items():
        if key not in reading.properties:
            (pinned if key in hidden else presets)[key] = value
    pinned.update({key: value for key, value in owner.pinned.items() if key not in reading.properties})


def _without(schema: dict[str, Any], hidden: Collection[str]) -> dict[str, Any]:
    shown = schema.copy()
    shown["properties"] = {key: item for key, item in schema["properties"].items() if key not in hidden}
    shown["required"] = [key for key in schema["required"] if key not in hidden]
    return shown
