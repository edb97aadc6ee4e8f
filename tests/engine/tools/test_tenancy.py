"""Two users of one row never see, change or count what the other keeps: every action of every tool that keeps things.

Each call goes through the engine: prepared, checked, journalled.
"""

from __future__ import annotations

import pytest

from engine.loading import actions_metadata
from events import Executed, Failed
from tests.engine.forecasts import storing
from tests.engine.staging import proved
from tests.engine.tools.households import Household, kept
from tests.engine.tools.tenancies import SECRET, TENANCIES, Tenancy

__all__ = ()

pytestmark = pytest.mark.anyio

each_tool = pytest.mark.parametrize("tenancy", TENANCIES, ids=lambda each: each.tool.name)


@each_tool
async def test_every_action_has_a_sample(tenancy: Tenancy) -> None:
    actions = [entry["name"] for entry in await actions_metadata(tenancy.tool)]
    assert [name for name, _ in tenancy.samples] == actions


@each_tool
async def test_two_users_of_one_row_share_nothing(journal_url: str, tenancy: Tenancy) -> None:
    async with storing(journal_url) as engine:
        users = Household(engine, tenancy)
        await users.move_in("ada", "bob", "eve")
        await users.done("ada", tenancy.seeds)
        owned = await kept(engine, "ada")
        assert sum(map(len, owned.values())) > len(tenancy.seeds)
        for name, arguments in tenancy.samples:
            outcome = await users.run("bob", name, arguments)
            assert isinstance(outcome, Executed), (name, outcome)
            echoed = str(outcome.result).replace(str(arguments), "")
            for given in arguments.values():
                echoed = echoed.replace(str(given), "")
            assert SECRET not in echoed, name
            assert await kept(engine, "ada") == owned, name
        await users.done("eve", tenancy.seeds)
        hers = await kept(engine, "eve")
        await users.done("ada", tenancy.samples)
        assert await kept(engine, "eve") == hers
        await users.done("eve", tenancy.samples)
        assert {name: len(rows) for name, rows in (await kept(engine, "eve")).items()} == {
            name: len(rows) for name, rows in (await kept(engine, "ada")).items()
        }
        await proved(engine)


@pytest.mark.parametrize(
    "tenancy", [each for each in TENANCIES if each.tool.user_scoped], ids=lambda each: each.tool.name
)
async def test_nobody_keeps_nothing(sqlite_url: str, tenancy: Tenancy) -> None:
    async with storing(sqlite_url) as engine:
        users = Household(engine, tenancy)
        await users.move_in("ada", "bob", "eve")
        for name, arguments in tenancy.samples:
            # An agent's list is what brings them to the row.
            outcome = await users.run(None, name, arguments, agent_id="a1", tool_ids=(users.row_id,))
            assert isinstance(outcome, Failed), name
            assert outcome.kind == "load"


@each_tool
async def test_arguments_are_checked_before_anything_runs(sqlite_url: str, tenancy: Tenancy) -> None:
    async with storing(sqlite_url) as engine:
        users = Household(engine, tenancy)
        await users.move_in("ada", "bob", "eve")
        for name, arguments in tenancy.samples:
            outcome = await users.run("ada", name, {**arguments, "tenant": "ubob"})
            assert isinstance(outcome, Failed), name
            assert outcome.kind == "invalid_arguments", name
        assert not any((await kept(engine, "ada")).values())
