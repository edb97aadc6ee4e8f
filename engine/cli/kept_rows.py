"""The rows of a journal for one command: without an engine, but with everything that their tools need."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio

from engine.cli.database import opened
from engine.cli.options import Choice
from engine.cli.outgoing import outgoing_policy
from engine.cli.permitted import tool_policy
from engine.configured_rows import Rows
from engine.credentials import Vault
from engine.discovery import ToolManager
from engine.row_tools import RowTools
from engine.services import Services

__all__ = ("kept_rows", "tools_alone")


def tools_alone(choice: Choice, store: Any = None, tasks: Any = None) -> RowTools:
    """Return what asks tools, with nothing open."""
    services = Services(outgoing_policy(), vault=Vault(), store=store, tasks=tasks)
    return RowTools(ToolManager(choice.tools), services, tool_policy())


@asynccontextmanager
async def kept_rows(choice: Choice, *, make: bool = False) -> AsyncIterator[Rows]:
    """Open a journal that is there for its rows.

    :param make: make it, on SQLite, where there is none
    :raises LogUnavailable: if there is no journal, or it cannot be reached
    """
    async with opened(choice.url, make=make) as log, anyio.create_task_group() as tasks:
        tools = tools_alone(choice, log.store, tasks)
        try:
            yield Rows(log.store, tools)
        finally:
            with anyio.CancelScope(shield=True):
                await tools.services.aclose()
            tasks.cancel_scope.cancel()
