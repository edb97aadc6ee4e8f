"""To whom a row is shared, what they may do with it, and that nobody else learns that it is there."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select

from engine import ActionSettings, CallContext, Grantee
from engine.schema import tool_credential_delegations
from engine.sharing import Share
from events import Executed, Failed, NotFound, Refused
from events.keys import tenant_column
from tests.engine.forecasts import CANARY, refused, row, storing
from tests.engine.gating import paused, resumed
from tests.engine.staging import call, outcome_of

__all__ = ()

pytestmark = pytest.mark.anyio

FORECAST = ActionSettings(name="forecast", presets={"days": 3})
SECRET = {"auth_type": "bearer", "api_key": CANARY}
BOB, OPS, ALL = Grantee.user("b"), Grantee.team("ops"), Grantee.everyone()


async def test_a_row_is_shared_to_a_team_a_user_and_everyone(journal_url: str) -> None:
    async with storing(journal_url) as engine:
        rows = engine.rows
        await rows.add(row(config=SECRET), user_id="u")
        await refused(rows.share("w1", OPS, user_id="u"), "no team 'ops' that you are in", kind=NotFound)
        for member in ("u", "b", "c", "c"):
            await rows.teams.join("ops", member)
        assert await rows.teams.members("ops") == ["b", "c", "u"]
        assert (await rows.teams.of("b"), await rows.teams.of("x")) == (["ops"], [])
        assert await rows.share("w1", OPS, user_id="u") == Share(OPS, "viewer")
        viewed = await rows.get("w1", user_id="b")
        assert (viewed.role, viewed.has_secrets, viewed.row.config) == ("viewer", True, {"auth_type": "bearer"})
        await refused(rows.edit("w1", user_id="b", actions=[FORECAST]), "shared to you to be used")
        await rows.share("w1", BOB, "editor", user_id="u")
        assert (await rows.get("w1", user_id="b")).role == "editor"
        assert (await rows.get("w1", user_id="c")).role == "viewer"
        assert await rows.shares("w1", user_id="u") == [Share(OPS, "viewer"), Share(BOB, "editor")]
        await rows.unshare("w1", BOB, user_id="u")
        assert (await rows.get("w1", user_id="b")).role == "viewer"
        await rows.teams.leave("ops", "b")
        await refused(rows.get("w1", user_id="b"), "no tool row 'w1'", kind=NotFound)
        await refused(rows.teams.leave("ops", "b"), "not in team", kind=NotFound)
        await refused(rows.unshare("w1", BOB, user_id="u"), "not shared to user 'b'", kind=NotFound)
        await rows.share("w1", ALL, user_id="u")
        assert (await rows.get("w1", user_id=None)).role == "viewer"
        assert (await rows.list(user_id="x"))[0].role == "viewer"
        await rows.remove("w1", user_id="u")
        assert await rows.list(user_id="c") == await rows.list(user_id="x") == []
        assert await rows.versions("w1", user_id="c") == []
        assert len(await rows.versions("w1", user_id="u")) == 2


async def test_an_editor_changes_actions_and_nothing_else(journal_url: str) -> None:
    async with storing(journal_url) as engine:
        rows = engine.rows
        await rows.add(row(config=SECRET), user_id="u")
        await rows.share("w1", BOB, "editor", user_id="u")
        edited = await rows.edit("w1", user_id="b", actions=[FORECAST], by="b")
        assert (edited.user_id, edited.version, edited.actions) == ("u", 2, [FORECAST])
        changes: list[dict[str, Any]] = [
            {"label": "x"},
            {"active": False},
            {"config": {}},
            {"secrets": {"api_key": "x"}},
            {"replace_secrets": True},
            {"actions_metadata": None},
            {"actions": None, "label": "x"},
        ]
        for change in changes:
            await refused(rows.edit("w1", user_id="b", **change), "you may change its actions, its owner the rest")
        for work in (
            rows.remove("w1", user_id="b"),
            rows.share("w1", ALL, user_id="b"),
            rows.unshare("w1", OPS, user_id="b"),
            rows.shares("w1", user_id="b"),
        ):
            await refused(work, "only its owner")
        assert len(await rows.versions("w1", user_id="b")) == 2


async def test_what_is_no_share(sqlite_url: str) -> None:
    async with storing(sqlite_url) as engine:
        await engine.rows.add(row(), user_id="u")
        await refused(engine.rows.share("w1", Grantee.user("u"), user_id="u"), "already")
        await refused(engine.rows.share("w1", BOB, "owner", user_id="u"), "'owner'")  # type: ignore[arg-type]
        for name in ("", " "):
            with pytest.raises(Refused, match="needs a name"):
                Grantee.team(name)
        with pytest.raises(Refused, match="no name"):
            Grantee("everyone", "x")
        with pytest.raises(Refused, match="crowd"):
            Grantee("crowd", "x")  # type: ignore[arg-type]


async def test_another_tenant_s_row_is_not_there(journal_url: str) -> None:
    """For each verb, another tenant is told what it would be told of a row that nobody has."""
    async with storing(journal_url) as engine:
        rows = engine.rows
        await rows.add(row(), user_id="u")
        for stranger in ("x", None, ""):
            for identity in ("w1", "nothing"):
                works = (
                    rows.get(identity, user_id=stranger),
                    rows.edit(identity, user_id=stranger, label="mine"),
                    rows.edit(identity, user_id=stranger, version=7, secrets={"api_key": "x"}),
                    rows.remove(identity, user_id=stranger),
                    rows.share(identity, BOB, user_id=stranger),
                    rows.unshare(identity, BOB, user_id=stranger),
                    rows.shares(identity, user_id=stranger),
                )
                for work in works:
                    assert await refused(work, kind=NotFound) == f"there is no tool row {identity!r}"
                assert await rows.versions(identity, user_id=stranger) == []
            assert await rows.list(user_id=stranger) == []
        assert (await rows.get("w1", user_id="u")).row.version == 1


async def test_behaviour_130_a_shared_row_runs_with_its_owner_s_secrets_and_that_is_on_record(journal_url: str) -> None:
    table = tool_credential_delegations
    async with storing(journal_url) as engine:
        await engine.rows.add(row(config=SECRET), user_id="u")
        await engine.rows.share("w1", BOB, user_id="u")
        await engine.rows.offers.accept("w1", user_id="b")
        for user_id in ("u", "b"):
            context = CallContext(user_id=user_id, message_id=f"m-{user_id}")
            done = await outcome_of(engine, call({"city": "Ulm"}, name="forecast"), context)
            assert isinstance(done, Executed)
            assert done.result["key"] is True
        records = await engine.log.store.read(select(table.c.owner, table.c.invoker, table.c.tool_id, table.c.key))
        assert [tuple(each) for each in records] == [(tenant_column("u"), tenant_column("b"), "w1", "m-b:c1")]
        events = [record.event async for record in engine.log.read(user_id="b")]
        assert CANARY not in str(events)


async def test_a_share_that_ends_before_an_approved_call_runs_takes_it_away(journal_url: str) -> None:
    """With an agent or without; only where the agent's list named the row does the list still answer for it."""
    turns: dict[str, dict[str, Any]] = {
        "alone": {},
        "agent": {"agent_id": "a1"},
        "listed": {"agent_id": "a1", "tool_ids": ("w1",)},
    }
    ends: dict[str, Any] = {}
    async with storing(journal_url) as engine:
        asking = [ActionSettings(name="forecast", require_approval=True)]
        await engine.rows.add(row(config=SECRET, actions=asking), user_id="u")
        await engine.rows.share("w1", BOB, user_id="u")
        await engine.rows.offers.accept("w1", user_id="b")
        for turn, facts in turns.items():
            context = CallContext(user_id="b", message_id=turn, **facts)
            await paused(engine, call({"city": "Ulm"}, name="forecast"), context)
            await engine.decide(f"{turn}:c1", approve=True, by="ada", user_id="b")
        await engine.rows.unshare("w1", BOB, user_id="u")
        for turn in turns:
            ends[turn] = await resumed(engine, f"{turn}:c1", CallContext(user_id="b"))
    assert [type(each) for each in ends.values()] == [Failed, Failed, Executed]
    assert {each.kind for each in ends.values() if isinstance(each, Failed)} == {"unknown_tool"}
