"""A body that is an object: which properties it has once its parts are put together."""

from __future__ import annotations

from typing import Any

import msgspec

from engine.api.importing.keywords import kinds_of
from engine.api.importing.resolution import References
from engine.api.importing.schemas import sent_properties

__all__ = ("ObjectBody", "object_body")

_MAX_DEPTH = 20
_MAX_STEPS = 1000
_BEYOND = frozenset(
    {"not", "if", "then", "else", "enum", "const", "patternProperties", "propertyNames", "dependentSchemas"}
    | {"dependentRequired", "unevaluatedProperties", "$dynamicRef"}
)
"""Keywords that speak of the object as a whole, so that its properties cannot stand alone."""
_ABOUT = frozenset({"required", "type", "title", "description"})


class ObjectBody(msgspec.Struct, frozen=True):
    """The properties of a body.

    :ivar properties: as the document has them, without those that the server alone sets
    :ivar either: lists of names, of which one list at least must be given whole
    """

    properties: dict[str, Any]
    required: tuple[str, ...] = ()
    either: tuple[tuple[str, ...], ...] = ()


class _Parts(msgspec.Struct):
    steps: int = 0
    properties: dict[str, Any] = {}
    left_out: set[str] = set()
    required: dict[str, None] = {}
    either: list[tuple[str, ...]] = []
    open: bool = False


def object_body(node: Any, references: References, *, merge_choices: bool) -> ObjectBody | None:
    """Return an object's properties, its own and those of all its parts; None: it is best sent as one argument.

    That is so where it is no object or a choice between several, where it has no properties or takes any others.

    :param merge_choices: take the properties of all choices, and any others for none: a form has nothing but fields
    :raises Unimportable: if a reference in it leads nowhere
    """
    parts = _Parts()
    if not _gather(node, references, parts, merge_choices=merge_choices, depth=0):
        return None
    if not parts.properties or (parts.open and not merge_choices):
        return None
    known = tuple(name for name in parts.required if name in parts.properties)
    return ObjectBody(parts.properties, known, tuple(parts.either))


def _gather(node: Any, references: References, parts: _Parts, *, merge_choices: bool, depth: int) -> bool:
    node = references.followed(node)
    parts.steps += 1
    if parts.steps > _MAX_STEPS or depth > _MAX_DEPTH or not isinstance(node, dict) or not _BEYOND.isdisjoint(node):
        return False
    kinds = kinds_of(node.get("type"))
    if (kinds and "object" not in kinds) or (depth == 0 and not kinds and not _combines(node)):
        return False
    if node.get("additionalProperties") not in (None, False):
        parts.open = True
    _take_properties(node, references, parts)
    listed = node.get("allOf")
    single = [each[0] for each in (node.get("anyOf"), node.get("oneOf")) if isinstance(each, list) and len(each) == 1]
    for part in [*(listed if isinstance(listed, list) else ()), *single]:
        if not _gather(part, references, parts, merge_choices=merge_choices, depth=depth + 1):
            return False
    for keyword in ("anyOf", "oneOf"):
        choices = node.get(keyword)
        if isinstance(choices, list) and len(choices) > 1:
            if not merge_choices and not _take_either(choices, parts):
                return False
            if merge_choices and not _merge(choices, references, parts, depth):
                return False
    return True


def _combines(node: dict[str, Any]) -> bool:
    return any(key in node for key in ("properties", "allOf", "anyOf", "oneOf"))


def _take_properties(node: dict[str, Any], references: References, parts: _Parts) -> None:
    declared = node.get("properties")
    for name, each in sent_properties(node, references):
        known = parts.properties.get(name)
        parts.properties[name] = each if known is None or known == each else {"allOf": [known, each]}
        if isinstance(each, dict) and each.get("required") is True:
            parts.required[name] = None
    if isinstance(declared, dict):
        parts.left_out.update(declared.keys() - parts.properties.keys())
    required = node.get("required")
    for name in required if isinstance(required, list) else ():
        if isinstance(name, str):
            parts.required[name] = None


def _take_either(choices: list[Any], parts: _Parts) -> bool:
    """Keep a choice that speaks of nothing but which properties must be given; there may be one of these."""
    plain = [
        tuple(name for name in choice.get("required", ()) if isinstance(name, str))
        for choice in choices
        if isinstance(choice, dict) and _ABOUT.issuperset(choice) and isinstance(choice.get("required", []), list)
    ]
    if len(plain) < len(choices) or parts.either:
        return False
    parts.either.extend(plain)
    return True


def _merge(choices: list[Any], references: References, parts: _Parts, depth: int) -> bool:
    required: list[set[str]] = []
    for choice in choices:
        one = _Parts(steps=parts.steps)
        if not _gather(choice, references, one, merge_choices=True, depth=depth + 1):
            return False
        parts.steps = one.steps
        for name, each in one.properties.items():
            known = parts.properties.get(name)
            parts.properties[name] = each if known is None or known == each else {"anyOf": [known, each]}
        required.append(set(one.required))
    parts.required.update(dict.fromkeys(sorted(set.intersection(*required))))
    return True
