"""A row that is shared to a user, or to everyone, enters nobody's turns until that user has accepted it."""

from __future__ import annotations

from contextlib import suppress

import anyio
import pytest
from sqlalchemy import delete, select, update

from engine import CallContext, Engine, Grantee
from engine.pacing.kept_pace import Place, kept_turn
from engine.pacing.rate import Rate
from engine.schema import policy_epoch, tool_acceptances, tool_rates, tool_shares
from events import Conflict, Executed, Failed, NotFound
from events.keys import tenant_column
from tests.engine.forecasts import CANARY, names_of, refused, row, storing
from tests.engine.staging import call, outcome_of, proved

__all__ = ()

pytestmark = pytest.mark.anyio

SECRET = {"auth_type": "bearer", "api_key": CANARY}
BOB, ALL, OPS = Grantee.user("b"), Grantee.everyone(), Grantee.team("ops")
BOTH = ["forecast", "warn"]


async def waiting(engine: Engine, user_id: str | None = "b") -> list[str]:
    """Return the ids of the rows that wait for a user, and see that they are marked among its others."""
    found = await engine.rows.offers.list(user_id=user_id)
    assert found == [kept for kept in await engine.rows.list(user_id=user_id) if not kept.accepted]
    assert CANARY not in repr(found)
    assert all(kept.row.credentials is None for kept in found)
    return [kept.row.id for kept in found]


async def test_what_is_shared_waits_for_each_user_by_itself(journal_url: str) -> None:
    async with storing(journal_url) as engine:
        offers = engine.rows.offers
        await engine.rows.add(row(config=SECRET), user_id="u")
        for grantee, users in ((BOB, ["b"]), (ALL, ["b", "c", None])):
            await engine.rows.share("w1", grantee, user_id="u")
            for user in users:
                assert (await names_of(engine, user), await waiting(engine, user)) == ([], ["w1"])
                plain = CallContext(user_id=user, message_id=f"m{user}{grantee}")
                for name in ("forecast", "forecast_w1", "weather_forecast"):
                    unknown = await outcome_of(engine, call({"city": "Ulm"}, name=name, call_id=name), plain)
                    assert isinstance(unknown, Failed), (user, unknown)
                    assert unknown.kind == "unknown_tool"
                listed = CallContext(user_id=user, message_id=f"ids {plain.message_id}", tool_ids=("w1",))
                done = await outcome_of(engine, call({"city": "Ulm"}, name="forecast"), listed)
                assert isinstance(done, Executed), "its caller chose it"
            first = users[0]
            for _ in range(2):
                taken = await offers.accept("w1", user_id=first)
                assert (taken.role, taken.accepted, taken.row.credentials) == ("viewer", True, None)
            for user in users:
                expected = (BOTH, []) if user == first else ([], ["w1"])
                assert (await names_of(engine, user), await waiting(engine, user)) == expected
            assert await names_of(engine, "x") == []
            await engine.rows.unshare("w1", grantee, user_id="u")
            assert await names_of(engine, first) == []
        await proved(engine)


async def test_an_acceptance_ends_with_its_share(journal_url: str) -> None:
    """A share that is made again, and another share, are other ones; a later version of the row is not."""
    async with storing(journal_url) as engine:
        rows, offers = engine.rows, engine.rows.offers
        await rows.add(row(), user_id="u")
        await rows.share("w1", BOB, user_id="u")
        await offers.accept("w1", user_id="b")
        await rows.edit("w1", user_id="u", config={"offers": ["snow"]})
        await rows.share("w1", BOB, "editor", user_id="u")
        assert await names_of(engine, "b") == ["snow"], "a newer version, and another role, of what was accepted"
        await rows.unshare("w1", BOB, user_id="u")
        await rows.share("w1", BOB, user_id="u")
        assert (await names_of(engine, "b"), await waiting(engine)) == ([], ["w1"])
        await offers.accept("w1", user_id="b")
        await rows.share("w1", ALL, user_id="u")
        assert (await names_of(engine, "b"), await names_of(engine, "c")) == (["snow"], [])
        await rows.unshare("w1", BOB, user_id="u")
        assert (await names_of(engine, "b"), await waiting(engine)) == ([], ["w1"]), "everyone's was never accepted"
        await offers.accept("w1", user_id="b")
        await offers.accept("w1", user_id="c")
        await rows.share("w1", BOB, user_id="u")
        await rows.unshare("w1", BOB, user_id="u")
        assert (await names_of(engine, "b"), await names_of(engine, "c")) == (["snow"], ["snow"])
        for place in (Place(tenant_column("u"), "w1", "act"), Place(tenant_column("u"), "w2", "act")):
            await kept_turn(engine.log.store, place, Rate(calls=1, seconds=60), 0)
        await rows.remove("w1", user_id="u")
        assert await accepted(engine) == []
        assert await engine.log.store.read(select(tool_rates.c.tool_id)) == [("w2",)]


async def accepted(engine: Engine) -> list[tuple[str, str]]:
    """Return every acceptance that is kept."""
    columns = tool_acceptances.c
    statement = select(columns.tenant, columns.kind).order_by(columns.tenant, columns.kind)
    return [(tenant, kind) for tenant, kind in await engine.log.store.read(statement)]


async def test_what_cannot_be_accepted(journal_url: str) -> None:
    async with storing(journal_url) as engine:
        rows, offers = engine.rows, engine.rows.offers
        await rows.add(row(), user_id="u")
        for identity in ("w1", "nothing"):
            for work in (offers.accept(identity, user_id="b"), offers.withdraw(identity, user_id="b")):
                assert await refused(work, kind=NotFound) == f"there is no tool row {identity!r}"
        await refused(offers.accept("w1", user_id="u"), "your own")
        await refused(offers.withdraw("w1", user_id="u"), "your own")
        for member in ("u", "b"):
            await rows.teams.join("ops", member)
        await rows.share("w1", OPS, user_id="u")
        assert (await names_of(engine, "b"), await waiting(engine)) == (BOTH, []), "its members have agreed already"
        await refused(offers.accept("w1", user_id="b"), "a team that you are in")
        await refused(offers.withdraw("w1", user_id="b"), "a team that you are in")
        await rows.share("w1", ALL, user_id="u")
        assert await waiting(engine) == []
        await offers.accept("w1", user_id="b")
        assert (await offers.withdraw("w1", user_id="b")).accepted, "through the team still"
        await rows.teams.leave("ops", "b")
        assert await waiting(engine) == ["w1"]
        await rows.edit("w1", user_id="u", label="x")
        await refused(offers.accept("w1", user_id="b", version=1), "at version 2, not 1", kind=Conflict)
        assert (await offers.accept("w1", user_id="b", version=2)).accepted
        assert not (await offers.withdraw("w1", user_id="b")).accepted
        assert not (await offers.withdraw("w1", user_id="b")).accepted, "again: nothing"


async def test_what_one_user_accepted_is_no_other_user_s_and_of_no_other_row(journal_url: str) -> None:
    async with storing(journal_url) as engine:
        rows, offers = engine.rows, engine.rows.offers
        users, ids = ("b", "c"), ("w1", "w2", "w3")

        async def turns() -> dict[str, list[str]]:
            found: dict[str, list[str]] = {}
            for user in users:
                prepared = await engine.prepare_tools_for_llm(CallContext(user_id=user))
                found[user] = sorted({tool_id for tool_id, _ in prepared.names.values() if tool_id in ids})
                assert await waiting(engine, user) == [
                    kept.row.id for kept in await rows.list(user_id=user) if kept.row.id not in found[user]
                ]
            return found

        for row_id in ids:
            await rows.add(row(row_id), user_id="u")
            for user in users:
                await rows.share(row_id, Grantee.user(user), user_id="u")
        await offers.accept("w1", user_id="b")
        assert await turns() == {"b": ["w1"], "c": []}
        for row_id in ids:
            for user in users:
                await offers.accept(row_id, user_id=user)
        assert await turns() == {"b": [*ids], "c": [*ids]}
        await offers.withdraw("w1", user_id="b")
        assert await turns() == {"b": ["w2", "w3"], "c": [*ids]}
        await rows.unshare("w2", Grantee.user("b"), user_id="u")
        assert await turns() == {"b": ["w3"], "c": [*ids]}
        await rows.remove("w1", user_id="u")
        assert await turns() == {"b": ["w3"], "c": ["w2", "w3"]}


async def test_an_acceptance_that_an_older_release_left_behind_opens_nothing(journal_url: str) -> None:
    """It ends shares without knowing of acceptances."""
    async with storing(journal_url) as engine:
        await engine.rows.add(row(), user_id="u")
        for again in (ALL, BOB):
            await engine.rows.share("w1", BOB, user_id="u")
            await engine.rows.offers.accept("w1", user_id="b")
            ended = delete(tool_shares).where(tool_shares.c.row_id == "w1")
            raised = update(policy_epoch).values(epoch=policy_epoch.c.epoch + 1)
            await engine.log.store.write([raised, ended])
            await engine.rows.share("w1", again, user_id="u")
            assert (await names_of(engine, "b"), await waiting(engine)) == ([], ["w1"])


async def test_names_of_what_waits_change_no_name(journal_url: str) -> None:
    async with storing(journal_url) as engine:
        await engine.rows.add(row("mine"), user_id="b")
        await engine.rows.add(row("theirs"), user_id="u")
        before = await engine.prepare_tools_for_llm(CallContext(user_id="b"))
        await engine.rows.share("theirs", ALL, user_id="u")
        after = await engine.prepare_tools_for_llm(CallContext(user_id="b"))
        assert (after.functions, after.names) == (before.functions, before.names)
        done = await outcome_of(engine, call({"city": "Ulm"}, name="forecast"), CallContext(user_id="b"))
        assert isinstance(done, Executed)
        assert done.tool_id == "mine"


async def accept_if_there(engine: Engine) -> None:
    with suppress(NotFound):
        await engine.rows.offers.accept("w1", user_id="b")


async def test_an_acceptance_never_outlives_its_share(journal_url: str) -> None:
    """However accepting and ending the share overlap, on two workers: without the share nothing stays to be revived."""
    async with storing(journal_url) as one, storing(journal_url) as two:
        await one.rows.add(row(), user_id="u")
        for _ in range(8):
            await one.rows.share("w1", BOB, user_id="u")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(accept_if_there, one)
                tasks.start_soon(accept_if_there, two)
                await one.rows.unshare("w1", BOB, user_id="u")
            assert await accepted(two) == []
        await one.rows.share("w1", BOB, user_id="u")
        assert await waiting(two) == ["w1"]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(accept_if_there, one)
            tasks.start_soon(accept_if_there, two)
        assert await accepted(one) == [(tenant_column("b"), "user")]
