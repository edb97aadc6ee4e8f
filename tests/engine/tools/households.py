"""Users of one row of a tool, and what is kept for each."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select

from engine import CallContext, Engine, ToolRow
from engine.defaults import default_id
from engine.sharing import Grantee
from engine.tool_schema import tool_ledgers
from events import Executed
from events.keys import tenant_column
from tests.engine.staging import call, outcome_of
from tests.engine.tools.tenancies import Calls, Tenancy

__all__ = ("Household", "kept")


class Household:
    """Users of a tool whose rows are theirs together where it keeps things for each caller: their team's, or the
    default row that everyone has. Where it keeps things for its row's owner, each has a row that is set up alike.
    """

    def __init__(self, engine: Engine, tenancy: Tenancy) -> None:
        self._engine = engine
        self._tool = tenancy.tool
        self._count = 0

    async def move_in(self, *users: str) -> None:
        """Make the rows, if they are none of the defaults."""
        rows = self._engine.rows
        if not self._tool.user_scoped:
            for user in users:
                await rows.add(ToolRow(id=f"of-{user}", name=self._tool.name, config={"wiki": "home"}), user_id=user)
        elif not self._tool.default_on:
            await rows.add(ToolRow(id="r1", name=self._tool.name), user_id=users[0])
            for user in users:
                await rows.teams.join("house", user)
            await rows.share("r1", Grantee.team("house"), user_id=users[0])

    @property
    def row_id(self) -> str:
        """The row that they share."""
        return default_id(self._tool.name) if self._tool.default_on else "r1"

    async def run(self, user_id: str | None, name: str, arguments: dict[str, Any], **facts: Any) -> Any:
        """Return the outcome of a user's call.

        :param facts: what else the turn is
        """
        self._count += 1
        context = CallContext(user_id=user_id, message_id="m", conversation_id=f"of {user_id}", **facts)
        return await outcome_of(self._engine, call(arguments, name=name, call_id=f"c{self._count}"), context)

    async def done(self, user_id: str, calls: Calls) -> None:
        """Make calls that must work."""
        for name, arguments in calls:
            outcome = await self.run(user_id, name, arguments)
            assert isinstance(outcome, Executed), (name, outcome)
            assert outcome.status == "completed", (name, outcome.result)


async def kept(engine: Engine, user_id: str) -> dict[str, list[str]]:
    """Return every row of every table of a tool that is a user's."""
    whose = ("tool_id", "wiki", "space")
    every = tool_ledgers.metadata.tables.values()
    tables = [table for table in every if "tenant" in table.c and any(c in table.c for c in whose)]
    found = {}
    for table in tables:
        asked = select(table).where(table.c.tenant == tenant_column(user_id))
        found[table.name] = sorted(map(repr, await engine.log.store.read(asked)))
    return found
