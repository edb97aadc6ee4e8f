"""An engine for one command, over a journal that is there, with every tool that the command line knows."""

from __future__ import annotations

import getpass
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from engine.cli.catalogue import read_catalogue
from engine.cli.database import require_journal
from engine.cli.options import Choice
from engine.cli.outgoing import outgoing_policy
from engine.cli.output import Output, note
from engine.cli.permitted import tool_policy
from engine.cli.plain import one_line
from engine.cli.rendering import event_line
from engine.context import CallContext
from engine.engine import Engine
from engine.settings import Settings
from events.errors import Refused
from events.types import ToolEvent
from events.wire import to_wire

__all__ = ("person", "print_event", "require_runnable", "working")


@asynccontextmanager
async def working(choice: Choice, *, make: bool = False) -> AsyncIterator[Engine]:
    """Open an engine and close it.

    :param make: make the journal where there is none
    :raises LogUnavailable: if there is no journal, or it cannot be reached
    """
    if not make:
        require_journal(choice.url)
    policy = tool_policy()
    catalogue = await read_catalogue(choice.tools, policy)
    for problem in catalogue.problems:
        note(f"{problem.source} is left out: {problem.reason}")
    settings = Settings(tools_path=choice.tools, reconcile_interval=None, net=outgoing_policy(), tool_policy=policy)
    async with Engine.open(choice.url, rows=catalogue.rows, settings=settings) as engine:
        yield engine


def person(named: str | None) -> str:
    """Return who acts: as named, else whom the system says is logged in."""
    if named is not None:
        return named
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "the command line"


async def require_runnable(engine: Engine, key: str, choice: Choice) -> None:
    """Refuse to run a call of a tool that the command line does not know: the engine would record that it is gone.

    :raises Refused: if the call's tool is of an application's own rows
    """
    row = await engine.attempt(key, user_id=choice.user)
    if row is None or row.tool_id is None or row.attempt.phase is None:
        return
    # By its id alone, for what else the user has there changes no call's row; an agent's list answers for its rows.
    only = (row.tool_id,)
    context = CallContext(user_id=choice.user, headless=row.headless, agent_id=row.agent_id, tool_ids=only)
    known = (await engine.prepare_tools_for_llm(context)).names.values()
    if (row.tool_id, row.action_name) not in known:
        tool = one_line(f"{row.tool_name}.{row.action_name}")
        raise Refused(
            f"call {key!r} is of {tool} (row {row.tool_id!r}), which the command line does not have: run it where that "
            "is configured, or name its folder with --tools; it was left as it is"
        )


def print_event(output: Output, event: ToolEvent) -> None:
    """Print an event."""
    if output.as_json:
        output.record(to_wire(event))
    else:
        output.console.print(event_line(event, output.console.width), soft_wrap=True)
    output.flush()
