"""Two users of one row never see, change or count what the other keeps: every action of every tool that keeps things.

Each call goes through the engine: prepared, checked, journalled.
"""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select

from engine import CallContext, Engine, ToolRow
from engine.defaults import default_id
from engine.loading import actions_metadata
from engine.schema import metadata
from engine.sharing import Grantee
from engine.tool_schema import text_index
from events import Executed, Failed
from events.keys import tenant_column
from tests.engine.forecasts import storing
from tests.engine.staging import call, outcome_of, proved
from tests.engine.tools.tenancies import SECRET, TENANCIES, Calls, Tenancy

__all__ = ()

pytestmark = pytest.mark.anyio

each_tool = pytest.mark.parametrize("tenancy", TENANCIES, ids=lambda each: each.tool.name)


class Household:
    """Users of one row of a tool: its owner's, shared to everyone, or the default row that everyone has."""

    def __init__(self, engine: Engine, tenancy: Tenancy) -> None:
        self._engine = engine
        self._tool = tenancy.tool
        self._count = 0
        self.row_id = default_id(self._tool.name) if self._tool.default_on else "r1"

    async def move_in(self) -> None:
        """Make the row, if it is none of the defaults."""
        if not self._tool.default_on:
            await self._engine.rows.add(ToolRow(id=self.row_id, name=self._tool.name), user_id="ada")
            await self._engine.rows.share(self.row_id, Grantee.everyone(), user_id="ada")

    async def run(self, user_id: str | None, name: str, arguments: dict[str, Any]) -> Any:
        """Return the outcome of a user's call."""
        self._count += 1
        context = CallContext(user_id=user_id, message_id="m", conversation_id=f"of {user_id}")
        return await outcome_of(self._engine, call(arguments, name=name, call_id=f"c{self._count}"), context)

    async def done(self, user_id: str, calls: Calls) -> None:
        """Make calls that must work."""
        for name, arguments in calls:
            outcome = await self.run(user_id, name, arguments)
            assert isinstance(outcome, Executed), (name, outcome)
            assert outcome.status == "completed", (name, outcome.result)

    async def kept(self, user_id: str) -> dict[str, list[Any]]:
        """Return every row of every table that is a user's."""
        tables = [table for table in metadata.tables.values() if {"tenant", "tool_id"} <= {*table.c.keys()}]
        kept = {}
        for table in (*tables, text_index):
            asked = select(table).where(table.c.tenant == tenant_column(user_id))
            kept[table.name] = sorted(map(repr, await self._engine.log.store.read(asked)))
        return kept


@each_tool
async def test_every_action_has_a_sample(tenancy: Tenancy) -> None:
    actions = [entry["name"] for entry in await actions_metadata(tenancy.tool)]
    assert [name for name, _ in tenancy.samples] == actions
    assert tenancy.tool.user_scoped


@each_tool
async def test_two_users_of_one_row_share_nothing(journal_url: str, tenancy: Tenancy) -> None:
    async with storing(journal_url) as engine:
        users = Household(engine, tenancy)
        await users.move_in()
        await users.done("ada", tenancy.seeds)
        owned = await users.kept("ada")
        assert sum(map(len, owned.values())) > len(tenancy.seeds)
        for name, arguments in tenancy.samples:
            outcome = await users.run("bob", name, arguments)
            assert isinstance(outcome, Executed), (name, outcome)
            echoed = str(outcome.result).replace(str(arguments), "")
            for given in arguments.values():
                echoed = echoed.replace(str(given), "")
            assert SECRET not in echoed, name
            assert await users.kept("ada") == owned, name
        await users.done("eve", tenancy.seeds)
        hers = await users.kept("eve")
        await users.done("ada", tenancy.samples)
        assert await users.kept("eve") == hers
        await users.done("eve", tenancy.samples)
        assert {name: len(rows) for name, rows in (await users.kept("eve")).items()} == {
            name: len(rows) for name, rows in (await users.kept("ada")).items()
        }
        await proved(engine)


@each_tool
async def test_nobody_keeps_nothing(sqlite_url: str, tenancy: Tenancy) -> None:
    async with storing(sqlite_url) as engine:
        users = Household(engine, tenancy)
        await users.move_in()
        for name, arguments in tenancy.samples:
            outcome = await users.run(None, name, arguments)
            assert isinstance(outcome, Failed), name
            assert outcome.kind == "load"


@each_tool
async def test_arguments_are_checked_before_anything_runs(sqlite_url: str, tenancy: Tenancy) -> None:
    async with storing(sqlite_url) as engine:
        users = Household(engine, tenancy)
        await users.move_in()
        for name, arguments in tenancy.samples:
            outcome = await users.run("ada", name, {**arguments, "tenant": "ubob"})
            assert isinstance(outcome, Failed), name
            assert outcome.kind == "invalid_arguments", name
        assert not any((await users.kept("ada")).values())
