"""Which tools a deployment and a user let turns have, and which of them ask first."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import insert, update

from engine import CallContext, Engine, Rule, Settings, ToolPolicy, ToolRow
from engine.defaults import default_id, internal_row
from engine.schema import policy_epoch, tool_optouts
from events import Denied, Executed, Failed, LogUnavailable, Paused, Refused
from events.keys import tenant_column
from events.types import StreamEvent
from tests.engine.forecasts import KEYS, Clock, Weather, refused
from tests.engine.forecasts import row as weather_row
from tests.engine.gating import Device, paused, resumed
from tests.engine.losing import LosableJournal, drained, on_losable, spooling
from tests.engine.staging import call, outcome_of, proved, staged_engine

__all__ = ()

pytestmark = pytest.mark.anyio

CLOCK, WEATHER = default_id("clock"), default_id("weather")
CITY = {"city": "Ulm"}
LISTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "agent": {"agent_id": "a"},
    "agent's list": {"agent_id": "a", "tool_ids": (CLOCK, WEATHER, "given")},
    "ids": {"tool_ids": ("given", WEATHER, CLOCK)},
}
GIVEN = ToolRow(id="given", name="weather", user_id="u", config={"offers": ["given"]})
POLICIES: list[tuple[ToolPolicy, dict[str, str]]] = [
    (
        ToolPolicy(),
        {
            "plain": "given tell",
            "agent": "given",
            "agent's list": "given tell forecast warn",
            "ids": "given forecast warn tell",
        },
    ),
    (
        ToolPolicy(standing={"weather": "on"}),
        {
            "plain": "given forecast warn tell",
            "agent": "given",
            "agent's list": "given tell forecast warn",
            "ids": "given forecast warn tell",
        },
    ),
    (
        ToolPolicy(standing={"weather": "off", "clock": "ask"}),
        {"plain": "given tell", "agent": "given", "agent's list": "given tell", "ids": "given tell"},
    ),
    (
        ToolPolicy(allow=("weather", "notes"), standing={"clock": "on", "weather": "ask"}),
        {
            "plain": "given",
            "agent": "given",
            "agent's list": "given forecast warn",
            "ids": "given forecast warn",
        },
    ),
    (ToolPolicy(allow=("weather", "clock"), deny=("weather",)), dict.fromkeys(LISTS, "tell") | {"agent": ""}),
    (ToolPolicy(allow=()), dict.fromkeys(LISTS, "")),
]


@asynccontextmanager
async def governed(url: str, policy: ToolPolicy, rows: Sequence[ToolRow] = ()) -> Any:
    settings = Settings(master_keys=KEYS, tool_policy=policy)
    async with staged_engine(url, Weather, Clock, Device, rows=rows, settings=settings) as engine:
        yield engine


async def shown(engine: Engine, **facts: Any) -> str:
    """Return the names that a turn is shown of these tools, in order."""
    prepared = await engine.prepare_tools_for_llm(CallContext(**{"user_id": "u"} | facts))
    ours = ("tell", "forecast", "warn", "given", "snow", "reason")
    return " ".join(name for name in prepared.names if name in ours)


def ended(event: StreamEvent, kind: str = "unknown_tool") -> bool:
    return isinstance(event, Failed) and event.kind == kind


async def test_what_turns_have_by_the_deployment_s_word(sqlite_url: str) -> None:
    for policy, expected in POLICIES:
        async with governed(sqlite_url, policy, [GIVEN]) as engine:
            found = {how: await shown(engine, **facts) for how, facts in LISTS.items()}
            assert found == expected, policy
            # What is in no turn cannot be called either.
            context = CallContext(user_id="u", message_id="m", tool_ids=(CLOCK,))
            done = await outcome_of(engine, call(name="tell", call_id=str(policy)), context)
            waits = policy.permits("clock") and policy.standing.get("clock") == "ask"
            kind = Paused if waits else Executed if "tell" in expected["ids"] else Failed
            assert isinstance(done, kind), policy


async def test_a_policy_that_cannot_be_kept_is_refused_at_the_start(sqlite_url: str) -> None:
    wrong: list[tuple[dict[str, Any], tuple[str, ...]]] = [
        ({"standing": {"clok": "off"}}, ("'clok'", "there is no tool", "clock")),
        ({"allow": ("clock", "Clock")}, ("'Clock'", "there is no tool")),
        ({"deny": ("weathers",)}, ("'weathers'", "there is no tool")),
        ({"standing": {"clock": "maybe"}}, ("'maybe'", "'clock'", "on, off, ask")),
        ({"standing": {"notes": "on"}}, ("'notes'", "cannot be on by default", "stored row", "tool policy")),
        ({"standing": {"mcp_tool": "on"}}, ("'mcp_tool'", "must be configured", "server_url")),
        ({"standing": {"mcp_tool": "ask"}}, ("'mcp_tool'", "only rows that users configure", "deny it")),
        ({"standing": {"notes": "off"}}, ("'notes'", "only rows that users configure")),
        ({"deny": "weather"}, ("'weather'", "lists")),
    ]

    async def started(facts: dict[str, Any]) -> None:
        async with governed(sqlite_url, ToolPolicy(**facts)):
            raise AssertionError("it cannot be opened")

    for facts, words in wrong:
        await refused(started(facts), *words)
    notes = ToolRow(id="n", name="notes", synthesised=True)
    async with governed(sqlite_url, ToolPolicy(standing={"notes": "off"}), [notes, internal_row("think")]) as engine:
        assert await shown(engine) == "reason tell"
        assert "note_list" not in (await engine.prepare_tools_for_llm(CallContext(user_id="u"))).names
    async with governed(sqlite_url, ToolPolicy(deny=("think",)), [internal_row("think")]) as engine:
        assert await shown(engine) == "tell"


async def test_what_asks_first_asks_as_an_action_s_own_setting_does(sqlite_url: str) -> None:
    """A rule, a run's allowlist and a person open it as they open that; a tool that decides itself does not."""
    policy = ToolPolicy(standing={"clock": "ask", "remote_device": "ask"})
    device = ToolRow(id="d", name="remote_device", config={"mode": "full"}, synthesised=True)
    async with governed(sqlite_url, policy, [device]) as engine:

        async def tell(message_id: str, **facts: Any) -> StreamEvent:
            return await outcome_of(engine, call(name="tell"), CallContext(user_id="u", message_id=message_id, **facts))

        waiting = await tell("m1")
        assert isinstance(waiting, Paused)
        assert (waiting.pause_type, waiting.rule) == ("awaiting_approval", "require_approval")
        await engine.decide("m1:c1", approve=True, by="ann", user_id="u")
        assert isinstance(await resumed(engine, "m1:c1", CallContext(user_id="u")), Executed)
        denied = await tell("m2", headless=True)
        assert isinstance(denied, Denied)
        assert denied.reason == "headless"
        assert isinstance(await tell("m3", headless=True, tool_allowlist=frozenset({CLOCK})), Executed)
        listed = await tell("m4", agent_id="a", tool_ids=(CLOCK,))
        assert isinstance(listed, Paused)
        command = call({"command": "ls"}, name="run_command")
        assert isinstance(await outcome_of(engine, command, CallContext(user_id="u", message_id="m5")), Paused)
        await engine.rules.add(Rule(verdict="allow", tool="clock"), user_id="u")
        assert isinstance(await tell("m6"), Executed)
        await proved(engine)


async def test_stored_rows_obey_who_may_be_there_and_not_how_built_ins_stand(journal_url: str) -> None:
    async with governed(journal_url, ToolPolicy()) as engine:
        await engine.rows.add(weather_row(config={"offers": ["snow"]}), user_id="u")
        await engine.rows.edit("w1", user_id="u", actions=[])
        await engine.rows.edit("w1", user_id="u", actions=None)
    everywhere: list[dict[str, Any]] = [
        {},
        {"agent_id": "a"},
        {"tool_ids": ("w1",)},
        {"tool_ids": ("w1",), "agent_id": "a"},
    ]
    for policy, snow in (
        (ToolPolicy(standing={"weather": "off"}), "snow"),
        (ToolPolicy(deny=("weather",)), ""),
        (ToolPolicy(allow=("weather",)), "snow"),
        (ToolPolicy(allow=("notes",)), ""),
    ):
        async with governed(journal_url, policy) as engine:
            for facts in everywhere:
                assert (await shown(engine, **facts)).replace("tell", "").strip() == snow, (policy, facts)
            if snow:
                continue
            await refused(engine.rows.add(weather_row("w2"), user_id="u"), "'weather'", "not permitted")
            assert [each.name for each in await engine.rows.built_ins.list(user_id="u") if each.name == "weather"] == []
            await engine.rows.edit("w1", user_id="u", label="kept")


async def test_an_approved_call_of_what_is_denied_by_now_fails(journal_url: str) -> None:
    async with governed(journal_url, ToolPolicy(standing={"clock": "ask"})) as engine:
        for message_id in ("m1", "m2", "m3"):
            await paused(engine, call(name="tell"), CallContext(user_id="u", message_id=message_id))
            await engine.decide(f"{message_id}:c1", approve=True, by="ann", user_id="u")
        await engine.rows.built_ins.set("clock", "off", user_id="u")
        assert ended(await resumed(engine, "m1:c1", CallContext(user_id="u")))
        await engine.rows.built_ins.set("clock", "on", user_id="u")
    for key, policy in (("m2:c1", ToolPolicy(deny=("clock",))), ("m3:c1", ToolPolicy(standing={"clock": "off"}))):
        async with governed(journal_url, policy) as engine:
            assert ended(await resumed(engine, key, CallContext(user_id="u")))


async def test_a_user_closes_what_the_deployment_opens_and_never_the_other_way(journal_url: str) -> None:
    """Each row: what the deployment says, what the user says, what holds and by whose word."""
    said: list[tuple[Any, Any, str, str | None]] = [
        (None, "off", "off", "user"),
        (None, "ask", "ask", "user"),
        (None, "on", "on", None),
        ("on", "ask", "ask", "user"),
        ("on", "on", "on", "deployment"),
        ("ask", "on", "ask", "deployment"),
        ("ask", "off", "off", "user"),
        ("ask", "ask", "ask", "deployment"),
        ("off", "on", "off", "deployment"),
        ("off", "ask", "off", "deployment"),
    ]
    kinds = {"on": Executed, "ask": Paused, "off": Failed}
    for place, (deployment, user, holds, by) in enumerate(said):
        policy = ToolPolicy(standing={} if deployment is None else {"clock": deployment})
        async with governed(journal_url, policy) as here, governed(journal_url, policy) as there:
            found = await here.rows.built_ins.set("clock", user, user_id="u")
            assert (found.standing, found.set_by) == (holds, by), place
            assert found in await there.rows.built_ins.list(user_id="u")
            for how in ("plain", "agent's list", "ids"):
                context = CallContext(user_id="u", message_id=f"{place}-{how}", **LISTS[how])
                event = await outcome_of(there, call(name="tell"), context)
                assert type(event) is kinds[holds], (place, how, event)
                assert (await shown(there, **LISTS[how])).count("tell") == (holds != "off")
                other = CallContext(user_id="v", message_id=f"{place}-{how}-v", **LISTS[how])
                assert type(await outcome_of(there, call(name="tell"), other)) is kinds[deployment or "on"], (
                    place,
                    how,
                )
            listed = {each.name: each.standing for each in await there.rows.built_ins.list(user_id="v")}
            assert listed["clock"] == (deployment or "on")


async def test_what_another_worker_s_user_says_holds_at_once(journal_url: str) -> None:
    policy = ToolPolicy()
    async with governed(journal_url, policy) as here, governed(journal_url, policy) as there:
        count = 0
        before = await there.prepare_tools_for_llm(CallContext(user_id="u"))
        steps: list[tuple[Any, type[Any]]] = [("ask", Paused), ("on", Executed), ("off", Failed), ("ask", Paused)]
        for standing, kind in steps:
            await here.rows.built_ins.set("clock", standing, user_id="u")
            for facts in (LISTS["plain"], LISTS["ids"]):
                count += 1
                context = CallContext(user_id="u", message_id="m", **facts)
                event = await outcome_of(there, call(name="tell", call_id=f"c{count}"), context, before)
                assert type(event) is kind, (standing, facts, event)
        # The toolset is made anew where something was said, and only there.
        now = await there.prepare_tools_for_llm(CallContext(user_id="u"))
        assert await there.prepare_tools_for_llm(CallContext(user_id="u")) is now
        await here.rows.built_ins.set("clock", "off", user_id="v")
        assert await there.prepare_tools_for_llm(CallContext(user_id="u")) is now
        await here.rows.built_ins.set("clock", "off", user_id="u")
        assert await there.prepare_tools_for_llm(CallContext(user_id="u")) is not now


async def test_what_asks_first_asks_of_a_stored_row_that_stands_for_it(journal_url: str) -> None:
    """At the next call of another worker too, whether or not the row was changed meanwhile."""
    policy, count = ToolPolicy(), 0
    async with governed(journal_url, policy) as here, governed(journal_url, policy) as there:
        await here.rows.add(ToolRow(id="mine", name="clock"), user_id="u")
        await there.prepare_tools_for_llm(CallContext(user_id="u"))
        for standing, label, kind in (
            ("on", "a", Executed),
            ("ask", None, Paused),
            ("on", "b", Executed),
            ("ask", "c", Paused),
        ):
            await here.rows.built_ins.set("clock", standing, user_id="u")
            if label is not None:
                await here.rows.edit("mine", user_id="u", label=label)
            count += 1
            event = await outcome_of(there, call(name="tell"), CallContext(user_id="u", message_id=f"m{count}"))
            assert (type(event), event.tool_id) == (kind, "mine"), (count, event)
        await there.decide("m4:c1", approve=True, by="ann", user_id="u")
        assert isinstance(await resumed(there, "m4:c1", CallContext(user_id="u")), Executed)


async def test_what_a_user_says_holds_while_the_journal_is_away(losable: LosableJournal, tmp_path: Path) -> None:
    """Where it is known: that the rules are known, from a call of another turn, says nothing of it."""
    reading = type("Reading", (Clock,), {"name": "clock", "effect": "read"})
    settings, rows = spooling(tmp_path, master_keys=KEYS), [replace(GIVEN, user_id=None)]
    async with on_losable(losable, settings, Weather, reading, rows=rows) as here:
        for user, standing in (("u", "off"), ("v", "ask"), ("w", "on")):
            await here.rows.built_ins.set("clock", standing, user_id=user)  # type: ignore[arg-type]
    for known in (False, True):
        async with on_losable(losable, settings, Weather, reading, rows=rows) as there:
            for user in "uvw":
                context = CallContext(user_id=user, message_id=f"{user}{known}", tool_ids=("given",))
                assert isinstance(await outcome_of(there, call(CITY, name="given"), context), Executed)
                if known:
                    await there.prepare_tools_for_llm(CallContext(user_id=user))
            losable.go_away()
            ran = []
            for user in "uvw":
                # The allowlist opens what asks.
                allowed = frozenset({CLOCK} if user == "v" else ())
                context = CallContext(user_id=user, message_id="away", headless=True, tool_allowlist=allowed)
                with suppress(LogUnavailable):
                    event = await outcome_of(there, call(name="tell", call_id=f"{user}{known}"), context)
                    ran += [user] if isinstance(event, Executed) else []
            assert ran == (["v", "w"] if known or losable.readable else [])
            losable.come_back()
            await drained(there)


async def test_what_an_older_release_wrote_and_what_a_newer_one_writes(journal_url: str) -> None:
    async with governed(journal_url, ToolPolicy()) as engine:
        names = {"clock": {}, "weather": {"standing": "perhaps"}, "gone": {}}
        for name, more in names.items():
            row = {"tenant": tenant_column("u"), "name": name, **more}
            raised = update(policy_epoch).values(epoch=policy_epoch.c.epoch + 1)
            await engine.log.store.write([raised, insert(tool_optouts).values(**row)])
        assert await shown(engine) == await shown(engine, tool_ids=(CLOCK, WEATHER)) == ""
        listed = {each.name: each.standing for each in await engine.rows.built_ins.list(user_id="u")}
        assert (listed["clock"], listed["weather"], "gone" in listed) == ("off", "off", False)


def test_a_standing_is_one_of_three() -> None:
    with pytest.raises(Refused, match="'no'"):
        ToolPolicy(standing={"clock": "no"})  # type: ignore[dict-item]
