"""Tools that the caller of the engine runs itself (BEHAVIOUR 22, 23)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from engine.actions import Action
from engine.rows import ToolRow
from events.errors import Refused

__all__ = ("resolve_client_tools",)


class _Definition(msgspec.Struct, frozen=True, kw_only=True):
    """A function definition in any provider's form; untyped, since it comes from outside."""

    function: Any = None
    name: Any = None
    description: Any = None
    parameters: Any = None
    input_schema: Any = None
    require_approval: Any = None


def resolve_client_tools(
    definitions: Sequence[dict[str, Any]], user_id: str | None = None
) -> tuple[tuple[ToolRow, Action], ...]:
    """Return a row (``ct0``, ``ct1``, … by place) and its one action for each function definition.

    Taken are ``{"type": "function", "function": {…}}`` and the flat forms (``parameters`` or ``input_schema``). A
    definition without a name is called ``clienttool<place>``; its schema passes through untouched.

    :raises Refused: if a definition is no object
    """
    return tuple(_resolve(place, definition, user_id) for place, definition in enumerate(definitions))


def _resolve(place: int, definition: dict[str, Any], user_id: str | None) -> tuple[ToolRow, Action]:
    if not isinstance(definition, dict):
        raise Refused(f"client tool {place} must be a function definition (an object), not {type(definition).__name__}")
    stated = _stated(definition)
    if isinstance(stated.function, dict):
        stated = _stated({**definition, **stated.function})
    name = stated.name if isinstance(stated.name, str) and stated.name else f"clienttool{place}"
    schema = stated.parameters if stated.parameters is not None else stated.input_schema
    schema = schema if isinstance(schema, dict) else {}
    row = ToolRow(id=f"ct{place}", name=name, user_id=user_id, synthesised=True, client_side=True)
    action = Action(
        tool_id=row.id,
        tool_name=name,
        name=name,
        description=stated.description if isinstance(stated.description, str) else "",
        parameters=schema,
        shown=schema,
        require_approval=stated.require_approval is True,
        client_side=True,
        synthesised=True,
    )
    return row, action


def _stated(definition: dict[str, Any]) -> _Definition:
    return _Definition(**{key: definition[key] for key in _Definition.__struct_fields__ if key in definition})
