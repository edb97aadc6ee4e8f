"""Tools become the function schemas a model sees, with the way back from each name (DESIGN 6)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from engine.actions import Action
from engine.families import Family, family_of
from engine.google_schema import google_schema
from engine.naming import advertise
from engine.offering import offered

__all__ = ("Prepared", "prepare")


class Prepared(msgspec.Struct, frozen=True):
    """What a turn offers its model.

    :ivar functions: what belongs in the provider request's list of tools, in the family's form
    :ivar names: where each advertised name leads: (tool id, action name)
    :ivar family: whose form it is
    """

    functions: list[dict[str, Any]]
    names: dict[str, tuple[str, str]]
    family: Family

    def __repr__(self) -> str:
        return f"<Prepared {len(self.names)} names for {self.family}>"


def prepare(actions: Iterable[Action], family: str) -> Prepared:
    """Return the schemas of the offered actions: stored rows' first, inactive ones left out, doubled built-ins once.

    Nothing the actions hold is changed; their schemas are shared, so treat the result as read-only. A family nobody
    knows gets openai's form.
    """
    known = family_of(family)
    offer = offered(actions)
    names = advertise(offer, known)
    functions = [_function(action, name, known) for action, name in zip(offer, names, strict=True)]
    if known == "google":
        functions = [{"functionDeclarations": functions}] if functions else []
    routes = {name: (action.tool_id, action.name) for action, name in zip(offer, names, strict=True)}
    return Prepared(functions, routes, known)


def _function(action: Action, name: str, family: Family) -> dict[str, Any]:
    described: dict[str, Any] = {"name": name, "description": action.description}
    match family:
        case "openai":
            return {"type": "function", "function": {**described, "parameters": action.shown}}
        case "openai.responses":
            # Strict is the Responses default, and most tools' schemas do not qualify.
            return {"type": "function", **described, "parameters": action.shown, "strict": False}
        case "anthropic":
            return {**described, "input_schema": _object(action.shown)}
        case "google":
            parameters = google_schema(action.shown)
            return described if parameters is None else {**described, "parameters": parameters}
        case "mcp":
            return {**described, "inputSchema": _object(action.shown)}


def _object(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with the type that these families insist on."""
    return schema if schema.get("type") == "object" else {**schema, "type": "object"}
