"""Tools become the function schemas a model sees, with the way back from each name (DESIGN 6)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec

from engine.actions import Action
from engine.families import Family, family_of
from engine.google_schema import google_schema
from engine.naming import advertise
from engine.offering import offered
from engine.strict_schema import strict_schema

__all__ = ("Prepared", "prepare", "present")


class Prepared(msgspec.Struct, frozen=True, dict=True):
    """What a turn offers its model; shared by all turns that offer the same, so treat it as read-only.

    :ivar functions: what belongs in the provider request's list of tools, in the family's form
    :ivar names: where each advertised name leads: (tool id, action name)
    :ivar family: whose form it is
    :ivar strict: the names whose schemas are in strict form: a null for what they may leave out means that it was
    """

    functions: list[dict[str, Any]]
    names: dict[str, tuple[str, str]]
    family: Family
    strict: frozenset[str] = frozenset()

    @cached_property
    def encoded(self) -> msgspec.Raw:
        """``functions`` as JSON, encoded once: put it into a request's body, and encoding the body copies the bytes."""
        return msgspec.Raw(msgspec.json.encode(self.functions))

    def __repr__(self) -> str:
        return f"<Prepared {len(self.names)} names for {self.family}>"


def prepare(actions: Iterable[Action], family: str, *, strict: bool = False) -> Prepared:
    """Return the schemas of the offered actions: stored rows' first, inactive ones left out, doubled built-ins once.

    Nothing the actions hold is changed; their schemas are shared, so treat the result as read-only. A family nobody
    knows gets openai's form.

    :param strict: of openai's families: each function whose schema can be said in their strict form has it
    """
    return present(offered(actions), family, strict=strict)


def present(
    offer: Sequence[Action],
    family: str,
    *,
    strict: bool = False,
    settled: Mapping[str, tuple[str, str] | None] | None = None,
) -> Prepared:
    """Return the schemas of exactly these actions (see :func:`prepare`; of ``settled``, :func:`advertise`)."""
    known = family_of(family)
    names = advertise(offer, known, settled)
    routes = {name: (action.tool_id, action.name) for action, name in zip(offer, names, strict=True)}
    if strict and known in ("openai", "openai.responses"):
        functions, strict_names = _strict_functions(offer, names, known)
        return Prepared(functions, routes, known, strict_names)
    return Prepared(_functions(offer, names, known), routes, known)


def _functions(offer: Sequence[Action], names: Sequence[str], family: Family) -> list[dict[str, Any]]:
    named = zip(offer, names, strict=True)
    match family:
        case "openai":
            return [
                {
                    "type": "function",
                    "function": {"name": name, "description": each.description, "parameters": each.shown},
                }
                for each, name in named
            ]
        case "openai.responses":
            return [_response(name, each.description, each.shown, strict=False) for each, name in named]
        case "anthropic":
            return [
                {"name": name, "description": each.description, "input_schema": _object(each.shown)}
                for each, name in named
            ]
        case "google":
            declarations = [_declaration(name, each) for each, name in named]
            return [{"functionDeclarations": declarations}] if declarations else []
        case "mcp":
            return [
                {"name": name, "description": each.description, "inputSchema": _object(each.shown)}
                for each, name in named
            ]


def _response(name: str, description: str, schema: dict[str, Any], *, strict: bool) -> dict[str, Any]:
    # Strict is the Responses default, and most tools' schemas do not qualify.
    return {"type": "function", "name": name, "description": description, "parameters": schema, "strict": strict}


def _declaration(name: str, action: Action) -> dict[str, Any]:
    described = {"name": name, "description": action.description}
    parameters = google_schema(action.shown)
    return described if parameters is None else {**described, "parameters": parameters}


def _strict_functions(
    offer: Sequence[Action], names: Sequence[str], family: Family
) -> tuple[list[dict[str, Any]], frozenset[str]]:
    functions: list[dict[str, Any]] = []
    strict_names: set[str] = set()
    for action, name in zip(offer, names, strict=True):
        schema = strict_schema(action.shown)
        strict = schema is not None
        if strict:
            strict_names.add(name)
        parameters = action.shown if schema is None else schema
        if family == "openai":
            function = {"name": name, "description": action.description, "parameters": parameters, "strict": strict}
            functions.append({"type": "function", "function": function})
        else:
            functions.append(_response(name, action.description, parameters, strict=strict))
    return functions, frozenset(strict_names)


def _object(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with the type that these families insist on."""
    return schema if schema.get("type") == "object" else {**schema, "type": "object"}
