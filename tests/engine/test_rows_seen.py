"""What one worker changes of a stored row, another sees at its next call and its next preparation, without waiting."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import pytest

from engine import ActionSettings, CallContext, Engine, ToolCall
from engine.defaults import default_id
from engine.sharing import Grantee
from events import Executed, Failed, Paused
from events.types import StreamEvent
from tests.engine.forecasts import Clock, Weather, names_of, row, storing
from tests.engine.losing import losable_postgres
from tests.engine.staging import call, outcome_of, proved, row_of

__all__ = ()

pytestmark = pytest.mark.anyio

Change: TypeAlias = Callable[[Engine], Awaitable[object]]
CITY = {"city": "Ulm"}


class Turns:
    """Calls of one tool, each under an id of its own."""

    def __init__(self, *engines: Engine) -> None:
        self.engines = engines
        self._count = 0

    def next(self, name: str = "forecast", arguments: Any = None) -> ToolCall:
        self._count += 1
        return call(CITY if arguments is None else arguments, name=name, call_id=f"c{self._count}")

    async def run(self, engine: Engine, user_id: str = "u", **facts: Any) -> StreamEvent:
        return await outcome_of(engine, self.next(**facts), CallContext(user_id=user_id, message_id="m"))


@asynccontextmanager
async def two_workers(url: str) -> AsyncIterator[Turns]:
    async with storing(url) as one, storing(url) as two:
        turns = Turns(one, two)
        for engine in (one, two):
            await outcome_of(engine, turns.next("tell", {}), CallContext(user_id="u", message_id="m"))
        yield turns


def ended(event: StreamEvent, kind: str) -> bool:
    return isinstance(event, Failed) and event.kind == kind


async def test_a_row_s_life_is_seen_by_the_other_worker(journal_url: str) -> None:
    """Added, changed, switched off and on, shared and unshared, removed; each worker is the other's other in turn."""
    async with two_workers(journal_url) as turns:
        for number, (here, there) in enumerate((turns.engines, turns.engines[::-1])):
            identity = f"w{number}"
            await here.rows.add(row(identity, config={"unit": "F"}), user_id="u")
            done = await turns.run(there)
            assert isinstance(done, Executed), "at the next call, before anything was prepared"
            assert done.result["unit"] == "F"
            await here.rows.edit(identity, user_id="u", config={"unit": "C"})
            done = await turns.run(there)
            assert isinstance(done, Executed)
            assert done.result["unit"] == "C", "its new configuration reached a new instance"
            await here.rows.edit(identity, user_id="u", active=False)
            assert ended(await turns.run(there), "unknown_tool")
            await here.rows.edit(identity, user_id="u", active=True)
            assert isinstance(await turns.run(there), Executed)
            assert ended(await turns.run(there, "v"), "unknown_tool")
            await here.rows.share(identity, Grantee.user("v"), user_id="u")
            assert ended(await turns.run(there, "v"), "unknown_tool"), "it waits until v accepts it"
            await here.rows.offers.accept(identity, user_id="v")
            assert isinstance(await turns.run(there, "v"), Executed)
            await here.rows.offers.withdraw(identity, user_id="v")
            assert ended(await turns.run(there, "v"), "unknown_tool")
            await here.rows.offers.accept(identity, user_id="v")
            assert isinstance(await turns.run(there, "v"), Executed)
            await here.rows.unshare(identity, Grantee.user("v"), user_id="u")
            assert ended(await turns.run(there, "v"), "unknown_tool")
            await here.rows.remove(identity, user_id="u")
            assert ended(await turns.run(there), "unknown_tool")
            await proved(there)


async def test_the_next_preparation_sees_it_too(journal_url: str) -> None:
    async with two_workers(journal_url) as turns:
        here, there = turns.engines
        steps: list[tuple[Change, list[str], list[str]]] = [
            (lambda e: e.rows.add(row(), user_id="u"), ["forecast", "warn"], []),
            (lambda e: e.rows.share("w1", Grantee.everyone(), user_id="u"), ["forecast", "warn"], []),
            (lambda e: e.rows.offers.accept("w1", user_id="x"), ["forecast", "warn"], []),
            (lambda e: e.rows.offers.accept("w1", user_id="v"), ["forecast", "warn"], ["forecast", "warn"]),
            (lambda e: e.rows.edit("w1", user_id="u", config={"offers": ["snow"]}), ["snow"], ["snow"]),
            (lambda e: e.rows.edit("w1", user_id="u", active=False), [], []),
            (lambda e: e.rows.edit("w1", user_id="u", active=True), ["snow"], ["snow"]),
            (lambda e: e.rows.unshare("w1", Grantee.everyone(), user_id="u"), ["snow"], []),
            (lambda e: e.rows.teams.join("ops", "u"), ["snow"], []),
            (lambda e: e.rows.share("w1", Grantee.team("ops"), user_id="u"), ["snow"], []),
            (lambda e: e.rows.teams.join("ops", "v"), ["snow"], ["snow"]),
            (lambda e: e.rows.teams.leave("ops", "v"), ["snow"], []),
            (lambda e: e.rows.remove("w1", user_id="u"), [], []),
        ]
        for number, (change, mine, theirs) in enumerate(steps):
            await change((here, there)[number % 2])
            for engine in (here, there):
                assert (await names_of(engine), await names_of(engine, "v")) == (mine, theirs), number
        prepared = await there.prepare_tools_for_llm(CallContext(user_id="u"))
        assert await there.prepare_tools_for_llm(CallContext(user_id="u")) is prepared


async def test_behaviour_133_an_instance_of_an_old_version_never_serves_a_call(journal_url: str) -> None:
    made: list[dict[str, Any]] = []

    class Counting(Weather):
        name = "counting"

        def __init__(self, config: dict[str, Any], scope: Any) -> None:
            super().__init__(config, scope)
            made.append(config)

    async with storing(journal_url, Counting) as one, storing(journal_url, Counting) as two:
        turns = Turns(one, two)
        secret = {"auth_type": "bearer", "api_key": "k-1234"}
        await one.rows.add(row(name="counting", config=secret), user_id="u")
        del made[:]
        for _ in range(3):
            await turns.run(two)
        used = [config for config in made if "api_key" in config]
        del made[:]
        await turns.run(two)
        assert (len(used), made) == (2, []), "one to ask what it can do, one that serves every call"
        await one.rows.edit("w1", user_id="u", secrets={"api_key": "k-5678"})
        del made[:]
        assert isinstance(await turns.run(two), Executed)
        assert {config["api_key"] for config in made} == {"k-5678"}


CHANGED: dict[str, tuple[dict[str, Any], str]] = {
    "schema": ({"config": {"offers": ["forecast"]}, "actions_metadata": "days required"}, "invalid_arguments"),
    "approval": ({"actions": [ActionSettings(name="forecast", require_approval=True)]}, "paused"),
    "inactive action": ({"actions": [ActionSettings(name="forecast", active=False)]}, "unknown_tool"),
    "action gone": ({"config": {"offers": ["snow"]}}, "unknown_tool"),
    "pinned": ({"actions": [ActionSettings(name="forecast", pinned={"city": "Rom"})]}, "invalid_arguments"),
    "inactive": ({"active": False}, "unknown_tool"),
    "label": ({"label": "x"}, "executed"),
}


def schema_that_requires(*names: str) -> list[dict[str, Any]]:
    return [{"name": "forecast", "parameters": {"properties": {"city": {}, "days": {}}, "required": list(names)}}]


@asynccontextmanager
async def changing_at_the_proposal(here: Engine, there: Engine, change: Change) -> AsyncIterator[None]:
    """Have another worker change something at the last moment before a call's proposal is written."""
    store, commit = there.log.store, there.log.store.commit

    async def committing(units: Any) -> Any:
        store.commit = commit  # type: ignore[method-assign]
        await change(here)
        return await commit(units)

    store.commit = committing  # type: ignore[method-assign]
    try:
        yield
    finally:
        store.commit = commit  # type: ignore[method-assign]


async def test_a_row_changed_between_proposal_and_run(journal_url: str) -> None:
    """The gate and the tool go by the row as it is when the proposal is durable."""
    async with two_workers(journal_url) as turns:
        here, there = turns.engines
        await here.rows.add(row("w0", config={"offers": ["other"]}), user_id="u")
        for name, (changes, end) in CHANGED.items():
            await here.rows.add(row(f"w-{name.replace(' ', '-')}"), user_id="u")
            identity = (await here.rows.list(user_id="u"))[-1].row.id
            assert "forecast" in await names_of(there)
            assert isinstance(await turns.run(there), Executed), name
            if "actions_metadata" in changes:
                changes = {"actions_metadata": schema_that_requires("city", "days")}

            async def change(engine: Engine, identity: str = identity, changes: Any = changes) -> None:
                await engine.rows.edit(identity, user_id="u", **changes)

            async with changing_at_the_proposal(here, there, change):
                event = await turns.run(there)
            found = "paused" if isinstance(event, Paused) else event.kind if isinstance(event, Failed) else "executed"
            assert found == end, (name, event)
            await here.rows.remove(identity, user_id="u")
        await proved(there)


async def test_a_row_taken_away_between_proposal_and_run(journal_url: str) -> None:
    async with two_workers(journal_url) as turns:
        here, there = turns.engines
        taking: dict[str, Change] = {
            "remove": lambda e: e.rows.remove("w-remove", user_id="x"),
            "unshare": lambda e: e.rows.unshare("w-unshare", Grantee.user("u"), user_id="x"),
            "withdraw": lambda e: e.rows.offers.withdraw("w-withdraw", user_id="u"),
        }
        for gone, take_away in taking.items():
            await here.rows.add(row(f"w-{gone}"), user_id="x")
            await here.rows.share(f"w-{gone}", Grantee.user("u"), user_id="x")
            await here.rows.offers.accept(f"w-{gone}", user_id="u")
            # As a turn begins: else the name might still mean the row before, which is gone.
            assert "forecast" in await names_of(there)
            assert isinstance(await turns.run(there), Executed)
            async with changing_at_the_proposal(here, there, take_away):
                event = await turns.run(there)
            assert ended(event, "unknown_tool"), gone
        await proved(there)


async def test_a_call_that_then_waits_is_approved_once_and_runs_as_it_is_now(journal_url: str) -> None:
    async with two_workers(journal_url) as turns:
        here, there = turns.engines
        await here.rows.add(row(config={"unit": "C"}), user_id="u")
        assert isinstance(await turns.run(there), Executed)
        asking = [ActionSettings(name="forecast", require_approval=True, description="Costly")]

        async def change(engine: Engine) -> None:
            await engine.rows.edit("w1", user_id="u", actions=asking, config={"unit": "F"})

        async with changing_at_the_proposal(here, there, change):
            pause = await turns.run(there)
        assert isinstance(pause, Paused)
        assert pause.old_fingerprint != pause.new_fingerprint == (await row_of(there, pause.key)).fingerprint
        await here.decide(pause.key, approve=True, by="ann", user_id="u")
        (done,) = [event async for event in here.resume(pause.key, CallContext(user_id="u"))]
        assert isinstance(done, Executed)
        assert done.result["unit"] == "F"
        await proved(here)


async def test_execute_all_and_resume_see_it(journal_url: str) -> None:
    async with two_workers(journal_url) as turns:
        here, there = turns.engines
        await here.rows.add(row(actions=[ActionSettings(name="forecast")]), user_id="u")
        await here.rows.add(row("w2", config={"offers": ["snow"]}), user_id="u")
        context = CallContext(user_id="u", message_id="m")
        prepared = await there.prepare_tools_for_llm(context)

        async def change(engine: Engine) -> None:
            await engine.rows.remove("w2", user_id="u")

        calls = [turns.next("forecast"), turns.next("snow"), turns.next("forecast")]
        ends: dict[str, StreamEvent] = {}
        async with changing_at_the_proposal(here, there, change), there.execute_all(calls, context, prepared) as events:
            async for event in events:
                ends[event.call_id] = event
        first, snow, last = (ends[str(each.id)] for each in calls)
        assert isinstance(first, Executed)
        assert isinstance(last, Executed)
        assert ended(snow, "unknown_tool")

        ask = [ActionSettings(name="forecast", require_approval=True)]
        await here.rows.edit("w1", user_id="u", actions=ask)
        waiting = [await turns.run(there), await turns.run(there)]
        assert [type(each) for each in waiting] == [Paused, Paused]
        for pause in waiting:
            await there.decide(pause.key, approve=True, by="ann", user_id="u")
        await here.rows.edit("w1", user_id="u", config={"unit": "F"})
        (again,) = [event async for event in there.resume(waiting[0].key, CallContext(user_id="u"))]
        assert isinstance(again, Paused)
        assert again.rule == "definition_changed"
        await here.rows.remove("w1", user_id="u")
        (gone,) = [event async for event in there.resume(waiting[1].key, CallContext(user_id="u"))]
        assert ended(gone, "unknown_tool")
        await proved(there)


async def test_what_was_stopped_by_an_old_row_is_looked_at_again(journal_url: str) -> None:
    async with two_workers(journal_url) as turns:
        here, there = turns.engines
        await here.rows.add(row(actions=[ActionSettings(name="forecast", require_approval=True)]), user_id="u")
        assert isinstance(await turns.run(there), Paused)
        await here.rows.edit("w1", user_id="u", actions=None)
        assert isinstance(await turns.run(there), Executed)
        assert ended(await turns.run(there, arguments={}), "invalid_arguments")
        await here.rows.edit("w1", user_id="u", actions_metadata=schema_that_requires())
        assert isinstance(await turns.run(there, arguments={}), Executed)


async def test_default_tools_are_switched_off_for_one_user_of_every_worker(journal_url: str) -> None:
    async with two_workers(journal_url) as turns:
        here, there = turns.engines
        plain = CallContext(user_id="u", message_id="m")
        listed = CallContext(user_id="u", message_id="m", agent_id="a", tool_ids=(default_id("clock"),))
        tell = ("tell", dict[str, Any]())
        prepared = await there.prepare_tools_for_llm(plain)
        await here.rows.built_ins.set("clock", "off", user_id="u")
        assert ended(await outcome_of(there, turns.next(*tell), plain, prepared), "unknown_tool")
        assert ended(await outcome_of(there, turns.next(*tell), plain), "unknown_tool")
        assert "tell" not in (await there.prepare_tools_for_llm(plain)).names
        assert "tell" in (await there.prepare_tools_for_llm(CallContext(user_id="v"))).names
        assert ended(await outcome_of(there, turns.next(*tell), listed), "unknown_tool")
        await here.rows.built_ins.set("clock", "on", user_id="u")
        for context in (plain, listed):
            assert isinstance(await outcome_of(there, turns.next(*tell), context), Executed)

        async def change(engine: Engine) -> None:
            await engine.rows.built_ins.set("clock", "off", user_id="u")

        for context in (plain, listed):
            async with changing_at_the_proposal(here, there, change):
                assert ended(await outcome_of(there, turns.next(*tell), context), "unknown_tool")
            await here.rows.built_ins.set("clock", "on", user_id="u")
        await proved(there)


async def test_whose_rows_a_turn_reaches(journal_url: str) -> None:
    """By id, a stored row is reached by its owner, by whom it is shared to, and where an agent answers for it."""
    async with two_workers(journal_url) as turns:
        here, there = turns.engines
        await here.rows.add(row("theirs", config={"offers": ["snow"]}), user_id="v")
        await here.rows.add(row("mine"), user_id="u")
        built_in = default_id("weather")
        expected: list[tuple[dict[str, Any], list[str]]] = [
            ({"tool_ids": ("theirs",)}, []),
            ({"tool_ids": ("theirs",), "agent_id": "a"}, ["snow"]),
            ({"tool_ids": ("mine", "theirs", "nothing")}, ["forecast", "warn"]),
            ({"tool_ids": ("theirs", "mine"), "agent_id": "a"}, ["snow", "forecast", "warn"]),
            ({"tool_ids": (built_in,), "agent_id": "a"}, ["forecast", "warn"]),
            ({"tool_ids": (built_in,)}, ["forecast", "warn"]),
            ({"agent_id": "a"}, ["forecast", "warn"]),
            ({"tool_ids": ()}, []),
            ({}, ["forecast", "warn"]),
        ]
        for facts, names in expected:
            assert await names_of(there, **facts) == names, facts
        for agent, end in ((None, "unknown_tool"), ("a", None)):
            context = CallContext(user_id="u", message_id="m", tool_ids=("theirs",), agent_id=agent)
            event = await outcome_of(there, turns.next("snow"), context)
            assert ended(event, end) if end else isinstance(event, Executed)
        await here.rows.share("theirs", Grantee.user("u"), user_id="v")
        assert await names_of(there, tool_ids=("theirs",)) == ["snow"]
        assert await names_of(there) == ["forecast", "warn"], "shared, and not accepted"
        context = CallContext(user_id="u", message_id="m", tool_ids=("theirs",))
        assert isinstance(await outcome_of(there, turns.next("snow"), context), Executed)
        await here.rows.offers.accept("theirs", user_id="u")
        assert await names_of(there) == ["forecast", "warn", "snow"]


async def test_behaviour_067_a_stored_row_s_tool_may_not_be_for_headless_runs(sqlite_url: str) -> None:
    class Watched(Weather):
        name = "watched"
        headless_allowed = False

    async with storing(sqlite_url, Watched) as engine:
        await engine.rows.add(row(name="watched"), user_id="u")
        for facts in ({}, {"tool_ids": ("w1",)}, {"tool_ids": ("w1",), "agent_id": "a"}, {"agent_id": "a"}):
            assert await names_of(engine, **facts) == ["forecast", "warn"]
            assert await names_of(engine, headless=True, **facts) == []


async def test_a_stored_row_goes_before_the_default_of_its_tool(sqlite_url: str) -> None:
    async with storing(sqlite_url) as engine:
        ask = [ActionSettings(name="tell", require_approval=True)]
        await engine.rows.add(row("own", name=Clock.name, actions=ask), user_id="u")
        prepared = await engine.prepare_tools_for_llm(CallContext(user_id="u"))
        assert [target for name, target in prepared.names.items() if name == "tell"] == [("own", "tell")]
        assert isinstance(await outcome_of(engine, call({}, name="tell")), Paused)


@pytest.mark.postgres
async def test_in_an_outage_the_last_known_rows_serve(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with losable_postgres(postgres_url, monkeypatch) as losable:
        async with storing(losable.url) as engine:
            await engine.rows.add(row(), user_id="u")
            assert isinstance(await Turns(engine).run(engine), Executed)
            losable.go_away()
            for _ in range(2):
                assert await names_of(engine) == ["forecast", "warn"]
                assert await names_of(engine, tool_ids=("w1",)) == ["forecast", "warn"]
            assert "the last known ones are used" in caplog.text
            losable.come_back()
            await engine.rows.edit("w1", user_id="u", active=False)
            assert await names_of(engine) == []


async def test_a_row_that_a_newer_release_wrote_takes_no_other_away(
    sqlite_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    from engine.schema import tool_rows

    async with storing(sqlite_url) as engine:
        await engine.rows.add(row("new", config={"offers": ["snow"]}), user_id="v")
        await engine.rows.share("new", Grantee.everyone(), user_id="v")
        await engine.rows.add(row(), user_id="u")
        await engine.log.store.write([tool_rows.update().where(tool_rows.c.id == "new").values(definition='{"n":1}')])
        assert await names_of(engine) == ["forecast", "warn"]
        assert await names_of(engine, agent_id="a", tool_ids=("new", "w1")) == ["forecast", "warn"]
    assert "'new' cannot be read by this release" in caplog.text
