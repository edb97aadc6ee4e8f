"""A GraphQL request of a collection: its query is fixed, its variables are one argument."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from engine.api.importing.argument_names import Argument
from engine.api.importing.examples import example_of
from engine.api.importing.imported import Unimportable
from engine.api.importing.postman_entries import entry_text
from engine.api.importing.postman_json import JsonTemplate, Known
from engine.api.importing.postman_variables import Variables
from engine.api.importing.schemas import Written
from engine.refusals import kind_of_json, quoted

__all__ = ("GraphQl", "read_graphql")

_LONGEST = 65_536
_MOST = 200
_DECLARED = re.compile(r"\$([A-Za-z_]\w{0,100})\s{0,20}:\s{0,20}(\[{0,5}\w{1,100}[\]!]{0,10})\s{0,20}(=?)")
_KINDS: dict[str, Any] = {
    "Int": "integer",
    "Float": "number",
    "Boolean": "boolean",
    "String": "string",
    "ID": ["string", "integer"],
}


class GraphQl(msgspec.Struct, frozen=True):
    """A GraphQL request.

    :ivar dropped: the names of variables whose values are secret
    """

    arguments: tuple[Argument, ...]
    dropped: tuple[str, ...] = ()


def read_graphql(stated: Any, variables: Variables) -> GraphQl:
    """Return the arguments of a GraphQL request.

    :raises Unimportable: if it has no query, or one that is not known whole; if its variables are no JSON object
    """
    if not isinstance(stated, dict):
        raise Unimportable(f"its GraphQL is {kind_of_json(stated)}, not an object")
    query = _plain(stated, "query", variables)
    if not query.strip():
        raise Unimportable("its GraphQL has no query")
    arguments = [_fixed("query", query)]
    if operation := _plain(stated, "operationName", variables).strip():
        arguments.append(_fixed("operationName", operation))
    known = _example(stated.get("variables"), variables)
    declared = {found[1]: found for found in list(_DECLARED.finditer(query))[:_MOST]}
    if declared or known.value:
        arguments.append(_variables(declared, known))
    return GraphQl(tuple(arguments), known.dropped)


def _plain(stated: dict[str, Any], name: str, variables: Variables) -> str:
    expanded = variables.expanded(entry_text(stated.get(name)))
    if expanded.plain is None:
        which = quoted((expanded.unknown or ["secret"])[0])
        raise Unimportable(f"its GraphQL {name} has the variable {which}, which is secret or has no value")
    if len(expanded.plain) > _LONGEST:
        raise Unimportable(f"its GraphQL {name} is longer than {_LONGEST >> 10} KiB")
    return expanded.plain


def _example(stated: Any, variables: Variables) -> Known:
    text = entry_text(stated).strip()
    if not text:
        return Known({}, True)
    template = JsonTemplate(text, variables)
    if template.content is None:
        return Known({}, True)
    if not isinstance(template.content, dict):
        raise Unimportable(f"its GraphQL variables are {kind_of_json(template.content)}, not an object")
    return template.known("variables", template.content)


def _fixed(name: str, text: str) -> Argument:
    schema = {"type": "string", "filled_by_llm": False, "value": text}
    return Argument(where="body", name=name, written=Written(schema), required=True)


def _variables(declared: dict[str, re.Match[str]], known: Known) -> Argument:
    example = example_of("variables", known.value)
    properties: dict[str, Any] = {**example.schema.get("properties", {})}
    required = []
    for name, found in declared.items():
        properties[name] = _schema(found[2]) or properties.get(name, {})
        if found[2].endswith("!") and not found[3]:
            required.append(name)
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    missing = [name for name in required if name not in known.value]
    if known.is_whole and not missing and known.value:
        return Argument(where="body", name="variables", written=Written({**schema, "value": example.value}))
    needed = bool(required) or not known.is_whole
    return Argument(where="body", name="variables", written=Written(schema), required=needed)


def _schema(kind: str) -> dict[str, Any]:
    """Return the schema of a type of GraphQL's own; of others nothing is known."""
    if kind.startswith("["):
        return {
            "type": "array" if kind.endswith("!") else ["array", "null"],
            "items": _schema(kind[1:].removesuffix("!").removesuffix("]")),
        }
    named = _KINDS.get(kind.rstrip("!"))
    if named is None:
        return {}
    if kind.endswith("!"):
        return {"type": named}
    return {"type": [*([named] if isinstance(named, str) else named), "null"]}
