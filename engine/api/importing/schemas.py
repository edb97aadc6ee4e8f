"""A document's schemas, written as JSON Schema 2020-12 for what is sent: parameters and request bodies."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from engine.api.importing.imported import Unimportable
from engine.api.importing.keywords import plain_schema, schema_texts
from engine.api.importing.resolution import References
from engine.refusals import kind_of_json

__all__ = ("MAX_NODES", "Schemas", "Written", "sent_properties")

MAX_NODES = 2000
"""Schema nodes of the definitions that one action carries; those further from its arguments take any value."""

_MAX_DEPTH = 64
_BEYOND = "Not spelt out here: any value is taken."
_NAME = re.compile(r"[^A-Za-z0-9_.-]+")
_ONE = (
    "items",
    "contains",
    "additionalProperties",
    "unevaluatedProperties",
    "unevaluatedItems",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
)
_CHOICES = ("anyOf", "oneOf")
_UNION = frozenset({"anyOf", "title", "description", "default"})
_COMBINED = frozenset({"$ref", "allOf", "anyOf", "not", "if", "const"})


class Written(msgspec.Struct, frozen=True):
    """A schema as it is written.

    :ivar uses: the names of the definitions it refers to
    :ivar size: how many schemas it holds, those it refers to not counted
    """

    schema: dict[str, Any]
    uses: tuple[str, ...] = ()
    size: int = 1


class Schemas:
    """Writes the schemas of one document anew; what is referred to becomes a definition, written once and shared.

    Left out is what only the server sends (``readOnly``). ``oneOf`` becomes ``anyOf``: without what was left out, two
    alternatives may well take the same value. References within the document may be cyclic.
    """

    def __init__(self, references: References, *, with_siblings: bool) -> None:
        """Take the document's references; ``with_siblings``: what stands beside a ``$ref`` counts (3.1)."""
        self.references = references
        self._with_siblings = with_siblings
        self._names: dict[str, str] = {}
        self._places: dict[str, str] = {}
        self._definitions: dict[str, Written] = {}

    def written(self, node: Any) -> Written:
        """Return a schema in its new form. :raises Unimportable: if it cannot be written, with the reason"""
        writer = _Writer(self, with_siblings=self._with_siblings)
        schema = writer.node(node)
        return Written(schema, tuple(writer.uses), writer.size)

    def definitions(self, uses: Iterable[str]) -> dict[str, Any]:
        """Return the definitions that these names need, all that they refer to included.

        They are bounded in number: the nearest are spelt out, those beyond take any value.

        :raises Unimportable: if one of them cannot be written
        """
        found: dict[str, Any] = {}
        waiting, size = deque(uses), 0
        while waiting:
            name = waiting.popleft()
            if name in found:
                continue
            definition = self._definition(name)
            size += definition.size
            if size > MAX_NODES:
                found[name] = {"description": _BEYOND}
                continue
            found[name] = definition.schema
            waiting.extend(definition.uses)
        return found

    def name_of(self, reference: str) -> str:
        """Return the name under which a reference's target is defined."""
        if (known := self._names.get(reference)) is None:
            self.references.followed({"$ref": reference})
            last = reference.rpartition("/")[2].replace("~1", "_").replace("~0", "_")
            base = _NAME.sub("_", last).strip("_")[:60] or "schema"
            known, number = base, 1
            while known in self._places:
                number += 1
                known = f"{base}_{number}"
            self._names[reference], self._places[known] = known, reference
        return known

    def _definition(self, name: str) -> Written:
        if (known := self._definitions.get(name)) is None:
            known = self._definitions[name] = self.written(self.references.target(self._places[name]))
        return known


def sent_properties(schema: dict[str, Any], references: References) -> Iterator[tuple[str, Any]]:
    """Yield the properties of an object that a request may carry: all but those the server alone sets."""
    properties = schema.get("properties")
    for name, each in properties.items() if isinstance(properties, dict) else ():
        if isinstance(name, str) and not _is_read_only(each, references):
            yield name, each


def _is_read_only(node: Any, references: References) -> bool:
    if not isinstance(node, dict):
        return False
    if isinstance(node.get("$ref"), str):
        node = references.followed(node)
    return isinstance(node, dict) and node.get("readOnly") is True


class _Writer:
    """Writes one schema, and remembers what it refers to."""

    def __init__(self, schemas: Schemas, *, with_siblings: bool) -> None:
        self._schemas = schemas
        self._with_siblings = with_siblings
        self.uses: dict[str, None] = {}
        self.size = 0

    def node(self, node: Any, depth: int = 0) -> dict[str, Any]:
        self.size += 1
        if depth > _MAX_DEPTH:
            raise Unimportable(f"a schema is nested more than {_MAX_DEPTH} levels deep")
        if node is None or isinstance(node, bool):
            return {"not": {}} if node is False else {}
        if not isinstance(node, dict):
            raise Unimportable(f"a schema is {kind_of_json(node)}, not an object")
        if isinstance(node.get("$ref"), str):
            return _with_null(self._reference(node, depth), node)
        return _with_null(self._keywords(node, depth), node)

    def _reference(self, node: dict[str, Any], depth: int) -> dict[str, Any]:
        name = self._schemas.name_of(node["$ref"])
        self.uses[name] = None
        beside = {key: item for key, item in node.items() if key not in ("$ref", "nullable", "x-nullable")}
        rest = self._keywords(beside, depth) if self._with_siblings and beside else schema_texts(beside)
        return {"$ref": f"#/$defs/{name}", **rest}

    def _keywords(self, node: dict[str, Any], depth: int) -> dict[str, Any]:
        written = plain_schema(node)
        for keyword in _ONE:
            if keyword in node and isinstance(node[keyword], (dict, bool)):
                written[keyword] = self._schema_or_flag(keyword, node[keyword], depth)
        if isinstance(items := node.get("prefixItems", node.get("items")), list):
            written["prefixItems"] = [self.node(item, depth + 1) for item in items]
        left_out = self._left_out(node.get("allOf"))
        self._combinations(node, written, left_out, depth)
        self._object(_without_required(node, left_out), written, depth)
        if isinstance(patterns := node.get("patternProperties"), dict):
            known = {key: self.node(item, depth + 1) for key, item in patterns.items() if _is_pattern(key)}
            written |= {"patternProperties": known} if known else {}
        return written

    def _schema_or_flag(self, keyword: str, content: Any, depth: int) -> Any:
        if isinstance(content, bool) and keyword.endswith("Properties"):
            return content
        return self.node(content, depth + 1)

    def _combinations(
        self, node: dict[str, Any], written: dict[str, Any], left_out: frozenset[str], depth: int
    ) -> None:
        listed = node.get("allOf")
        parts = [
            self.node(_without_required(part, left_out), depth + 1)
            for part in (listed if isinstance(listed, list) else ())
        ]
        for keyword in _CHOICES:
            choices = node.get(keyword)
            if isinstance(choices, list) and len(choices) == 1:
                parts.append(self.node(choices[0], depth + 1))
            elif isinstance(choices, list) and choices:
                union = {"anyOf": [self.node(choice, depth + 1) for choice in choices]}
                if "anyOf" in written:
                    parts.append(union)
                else:
                    written |= union
        if len(parts) == 1 and parts[0].keys().isdisjoint(written.keys() - {"title", "description"}):
            # The usual way to say something beside a reference.
            written |= {**parts[0], **written}
        elif parts:
            written["allOf"] = parts

    def _left_out(self, parts: Any) -> frozenset[str]:
        """Return the names of the properties that any of the parts declares as the server's alone."""
        references = self._schemas.references
        found: set[str] = set()
        for part in parts if isinstance(parts, list) else ():
            whole = references.followed(part)
            properties = whole.get("properties") if isinstance(whole, dict) else None
            if isinstance(properties, dict):
                found.update(properties.keys() - {name for name, _ in sent_properties(whole, references)})
        return frozenset(found)

    def _object(self, node: dict[str, Any], written: dict[str, Any], depth: int) -> None:
        declared = node.get("properties")
        required = node.get("required")
        names = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
        if isinstance(declared, dict):
            sent = dict(sent_properties(node, self._schemas.references))
            written["properties"] = {name: self.node(each, depth + 1) for name, each in sent.items()}
            names += [name for name, each in sent.items() if isinstance(each, dict) and each.get("required") is True]
            names = [name for name in names if name in sent or name not in declared]
        if names:
            written["required"] = list(dict.fromkeys(names))


def _without_required(part: Any, names: frozenset[str]) -> Any:
    if not names or not isinstance(part, dict) or not isinstance(part.get("required"), list):
        return part
    return {**part, "required": [name for name in part["required"] if name not in names]}


def _is_pattern(pattern: Any) -> bool:
    return isinstance(pattern, str) and "pattern" in plain_schema({"pattern": pattern})


def _with_null(written: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    """Return the schema as one that takes null too, where 3.0's ``nullable`` says so."""
    if node.get("nullable") is not True and node.get("x-nullable") is not True:
        return written
    if "anyOf" in written and written.keys() <= _UNION:
        return {**written, "anyOf": [*written["anyOf"], {"type": "null"}]}
    if not _COMBINED.isdisjoint(written):
        about = {key: item for key, item in written.items() if key in ("title", "description")}
        rest = {key: item for key, item in written.items() if key not in about}
        return {"anyOf": [rest, {"type": "null"}], **about}
    kinds = written.get("type")
    if isinstance(kinds, str):
        kinds = [kinds]
    changed: dict[str, Any] = {"type": list(dict.fromkeys([*kinds, "null"]))} if kinds else {}
    if "enum" in written and None not in written["enum"]:
        changed["enum"] = [*written["enum"], None]
    return {**written, **changed}
