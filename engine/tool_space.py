"""Whose what a row keeps for a user is: the user's, or apart from it one agent's, or one conversation's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final

from msgspec.structs import replace

from engine.contract import ToolContext, ToolStore

__all__ = ("Space", "kept_apart", "scope_requirements")

_SCOPES: Final = ("user", "agent", "conversation")


class Space:
    """A part of what a row keeps for a user; to whoever reads and writes it, it is a row of its own."""

    def __init__(self, store: ToolStore, scope: str, name: str) -> None:
        self._store = store
        # No row that is stored has an id with this sign in it.
        self._tool_id = f"{store.tool_id}@{scope}:{blake2b(name.encode(), digest_size=16).hexdigest()}"

    def __repr__(self) -> str:
        return f"<Space {self._tool_id}>"

    @property
    def tenant(self) -> str:
        """See ``ToolStore.tenant``."""
        return self._store.tenant

    @property
    def tool_id(self) -> str:
        """The row's id, and whose part it is."""
        return self._tool_id

    @property
    def dialect(self) -> str:
        """See ``ToolStore.dialect``."""
        return self._store.dialect

    async def read(self, statement: Any) -> Sequence[Any]:
        """See ``ToolStore.read``. :raises LogUnavailable: if the database cannot be read"""
        return await self._store.read(statement)

    async def write(self, *statements: Any) -> list[int]:
        """See ``ToolStore.write``. :raises LogUnavailable: if they were not written"""
        return await self._store.write(*statements)


def kept_apart(context: ToolContext, config: Mapping[str, Any]) -> ToolContext:
    """Return a call's context with the store that its row's ``scope`` says.

    A call without an agent, or conversation, is the user's.
    """
    scope = config.get("scope")
    name = {"agent": context.agent_id, "conversation": context.conversation_id}.get(str(scope))
    return context if name is None else replace(context, store=Space(context.store, str(scope), name))


def scope_requirements() -> dict[str, Any]:
    """Return what a row may configure."""
    return {
        "scope": {
            "type": "string",
            "required": False,
            "enum": list(_SCOPES),
            "default": "user",
            "description": "Whether what is kept is the user's in all conversations, or each agent, or each "
            "conversation, has its own.",
        }
    }
