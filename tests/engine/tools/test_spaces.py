"""A row whose scope is an agent, or a conversation: what one keeps there, the others neither see nor change."""

from __future__ import annotations

from typing import Any, Final

import pytest

from engine import CallContext, ToolRow
from events import Executed
from tests.engine.forecasts import refused, storing
from tests.engine.staging import call, outcome_of, proved
from tests.engine.tools.households import kept
from tests.engine.tools.tenancies import SECRET, TENANCIES, Tenancy

__all__ = ()

pytestmark = pytest.mark.anyio

SCOPED: Final = [each for each in TENANCIES if each.tool.user_scoped]
PLACES: Final[dict[str, list[dict[str, Any]]]] = {
    # The last is a call outside of any: it is the user's own.
    "agent": [{"agent_id": "a1"}, {"agent_id": "a2"}, {}],
    "conversation": [{"conversation_id": "c1"}, {"conversation_id": "c2"}, {}],
}


@pytest.mark.parametrize("scope", PLACES)
@pytest.mark.parametrize("tenancy", SCOPED, ids=lambda each: each.tool.name)
async def test_each_agent_or_conversation_has_its_own(sqlite_url: str, tenancy: Tenancy, scope: str) -> None:
    async with storing(sqlite_url) as engine:
        await engine.rows.add(ToolRow(id="r1", name=tenancy.tool.name, config={"scope": scope}), user_id="ada")
        count = 0

        async def done(place: dict[str, Any], name: str, arguments: dict[str, Any]) -> str:
            nonlocal count
            count += 1
            context = CallContext(user_id="ada", message_id="m", tool_ids=("r1",), **place)
            made = await outcome_of(engine, call(arguments, name=name, call_id=f"c{count}"), context)
            assert isinstance(made, Executed), made
            return str(made.result) if made.status == "completed" else ""

        first, second, outside = PLACES[scope]
        for name, arguments in tenancy.seeds:
            assert await done(first, name, arguments)
        for place in (second, outside):
            for name, arguments in tenancy.samples[:3]:
                said = await done(place, name, arguments)
                assert SECRET not in said.replace(str(arguments.get("path")), ""), name
        before = await kept(engine, "ada")
        for name, arguments in tenancy.seeds:
            assert await done(second, name, arguments)
        both = await kept(engine, "ada")
        assert all(set(rows) <= set(both[table]) for table, rows in before.items() if table != "tool_ledgers")
        # The first one's samples work as if it were alone, and change nothing of the second's.
        for name, arguments in tenancy.samples:
            assert await done(first, name, arguments), name
        for name, arguments in tenancy.samples:
            assert await done(second, name, arguments), name
        await proved(engine)


async def test_what_is_no_scope_is_refused(sqlite_url: str) -> None:
    async with storing(sqlite_url) as engine:
        for tenancy in SCOPED:
            row = ToolRow(id="r1", name=tenancy.tool.name, config={"scope": "everyone"})
            await refused(engine.rows.add(row, user_id="ada"), "scope")
