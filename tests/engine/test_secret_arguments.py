"""Secrets in a call's arguments: the journal never has them, and the tool always gets them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import MetaData, select

from engine import ActionSettings, Engine, Settings, Tool, ToolRow
from engine.contract import InputRequired, ToolContext
from engine.credentials import MasterKeys, Vault
from engine.rule import Rule
from engine.schema import metadata as engine_tables
from events import Approved, Denied, Executed, Failed, Paused, Proposed, Refused, to_wire
from events.schema import metadata as event_tables
from events.wire import chat_record
from projections.schema import metadata as projection_tables
from tests.engine.gating import resumed
from tests.engine.staging import CONTEXT, call, events_of, outcome_of, proved, row_of, staged_engine, stream_of, tool_of

__all__ = ()

pytestmark = pytest.mark.anyio

KEY = "zq-7Hf2-secret"
PASSWORD = "hunter22-canary"
KEYS = MasterKeys("k1", {"k1": b"1" * 32})
NEWER = MasterKeys("k2", {"k2": b"2" * 32, "k1": b"1" * 32})
SETTINGS = Settings(master_keys=KEYS)
TABLES: tuple[MetaData, ...] = (event_tables, projection_tables, engine_tables)
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "password": {"type": "string", "writeOnly": True, "minLength": 4, "maxLength": 20},
        "login": {"type": "object", "properties": {"pin": {"type": "integer", "writeOnly": True}, "name": {}}},
    },
    "additionalProperties": False,
}
SENT: dict[str, Any] = {"text": f"use {KEY}", "password": PASSWORD, "login": {"pin": 471147, "name": "ada"}}


class Seen:
    """A tool's function that keeps what it was given and returns all of it."""

    def __init__(self) -> None:
        self.given: list[dict[str, Any]] = []

    def tool(self, **facts: Any) -> type[Tool]:
        async def runs(**kwargs: Any) -> Any:
            self.given.append(kwargs)
            return kwargs

        return tool_of(runs, **{"parameters": SCHEMA, **facts})


def row(api_key: str | None = KEY, **other: Any) -> ToolRow:
    secrets = {} if api_key is None else {"api_key": api_key}
    return ToolRow(
        id="t1", name="counter", user_id="u", credentials=Vault(KEYS).seal(secrets, owner="u", row_id="t1"), **other
    )


def staged(url: str, tool: type[Tool], *, rows: list[ToolRow] | None = None, keys: MasterKeys = KEYS) -> Any:
    return staged_engine(url, tool, rows=rows or [row()], settings=Settings(master_keys=keys))


async def kept(engine: Engine) -> str:
    """Return everything that the journal's database holds."""
    tables = [table for metadata in TABLES for table in metadata.sorted_tables]
    return repr([await engine.log.store.read(select(*table.c)) for table in tables])


def shows_nothing(*shown: object) -> None:
    text = repr(shown)
    for secret in (KEY, PASSWORD, "471147"):
        assert secret not in text


async def test_the_tool_gets_what_was_sent_and_the_journal_keeps_none_of_it(journal_url: str) -> None:
    seen = Seen()
    async with staged(journal_url, seen.tool()) as engine:
        proposed, executed = await events_of(engine, call(SENT))
        assert seen.given == [SENT]
        assert isinstance(proposed, Proposed)
        assert isinstance(executed, Executed)
        assert executed.resolved["parameters"] == proposed.arguments
        assert to_wire(proposed)["arguments"]["password"] == "***"
        assert to_wire(proposed)["arguments"]["login"] == {"pin": "***", "name": "ada"}
        assert chat_record(proposed, executed)["arguments"]["password"] == "***"
        assert executed.result["password"] == "***"
        assert executed.result["text"] == "use «secret t1/api_key»"
        assert executed.result["login"] == {"pin": "***", "name": "ada"}
        told = await engine.tool_results("m", user_id="u", family="openai")
        shows_nothing(proposed, executed, to_wire(proposed), told, await row_of(engine), await kept(engine))
        assert await events_of(engine, call(SENT)) == [proposed, executed]
        assert len(seen.given) == 1
        await proved(engine)


async def test_what_was_approved_runs_with_its_secrets_on_another_worker(journal_url: str) -> None:
    seen = Seen()
    tool = seen.tool(metadata={"require_approval": True})
    async with staged(journal_url, tool) as engine:
        paused = await outcome_of(engine, call(SENT))
        assert isinstance(paused, Paused)
        shows_nothing(paused, to_wire(paused))
        await engine.decide("m:c1", approve=True, by="ada", user_id="u")
    async with staged(journal_url, tool) as engine:
        assert isinstance(await resumed(engine, "m:c1"), Executed)
        assert seen.given == [SENT]
        # The same call again is known.
        assert (await events_of(engine, call(SENT)))[-1] == (await stream_of(engine))[-1]
        assert len(seen.given) == 1
        assert PASSWORD not in await kept(engine)
        await proved(engine)


async def test_an_approver_edits_what_is_shown_and_what_is_masked_stays(journal_url: str) -> None:
    seen = Seen()
    async with staged(journal_url, seen.tool(metadata={"require_approval": True})) as engine:
        paused = await outcome_of(engine, call(SENT))
        assert isinstance(paused, Paused)
        shown = to_wire(paused)["arguments"]
        with pytest.raises(Refused, match="still waits"):
            await engine.decide("m:c1", approve=True, by="ada", user_id="u", arguments={**shown, "password": "abc"})
        edited = {**shown, "text": f"{shown['text']}, but kindly", "login": {"pin": 1, "name": KEY}}
        approved = await engine.decide("m:c1", approve=True, by="ada", user_id="u", arguments=edited)
        assert isinstance(approved, Approved)
        shows_nothing(approved)
        assert isinstance(await resumed(engine, "m:c1"), Executed)
        told = await engine.tool_results("m", user_id="u", family="openai")
    assert seen.given == [{"text": f"use {KEY}, but kindly", "password": PASSWORD, "login": {"pin": 1, "name": KEY}}]
    assert "cjv1" not in repr(told)
    shows_nothing(told)


async def test_a_reference_that_a_model_writes_stands_for_nothing(journal_url: str) -> None:
    seen = Seen()
    async with staged(journal_url, seen.tool(metadata={"require_approval": True})) as engine:
        paused = await outcome_of(engine, call({"text": KEY}))
        assert isinstance(paused, Paused)
        reference = paused.arguments["text"]
        assert reference.startswith("«secret t1/api_key ")
        copied = {"text": f"{reference} «secret t1/api_key» «secret "}
        for call_id in ("c1", "c2"):
            waits = await outcome_of(engine, call(copied, call_id=call_id))
            assert isinstance(waits, Paused)
            await engine.decide(waits.key, approve=True, by="ada", user_id="u")
            assert isinstance(await resumed(engine, waits.key), Executed)
    assert seen.given == [copied, copied]


async def test_a_secret_that_is_gone_fails_the_call_and_one_that_changed_runs_as_it_is(sqlite_url: str) -> None:
    seen = Seen()
    tool = seen.tool(metadata={"require_approval": True})
    async with staged(sqlite_url, tool) as engine:
        for number in range(3):
            await outcome_of(engine, call(SENT, call_id=f"c{number}"))
            await engine.decide(f"m:c{number}", approve=True, by="ada", user_id="u")
    async with staged(sqlite_url, tool, rows=[row("another-key")]) as engine:
        assert isinstance(await resumed(engine, "m:c0"), Executed)
        assert seen.given == [{**SENT, "text": "use another-key"}]
    for changed in (row(None), row(None, version=2)):
        async with staged(sqlite_url, tool, rows=[changed]) as engine:
            failed = await resumed(engine, f"m:c{changed.version}")
            assert isinstance(failed, Failed)
            assert failed.kind == "load"
            assert "api_key" in failed.message
    assert len(seen.given) == 1


async def test_after_a_rotation_the_same_call_is_still_known(sqlite_url: str) -> None:
    seen = Seen()
    async with staged(sqlite_url, seen.tool()) as engine:
        first = await events_of(engine, call(SENT))
    async with staged(sqlite_url, seen.tool(), keys=NEWER) as engine:
        assert await events_of(engine, call(SENT)) == first
        other = await events_of(engine, call({**SENT, "password": "another-one"}))
        assert other[0].key == "m:c1#2"
    assert len(seen.given) == 2


async def test_arguments_that_are_refused_are_sealed_too(sqlite_url: str) -> None:
    seen = Seen()
    refused: tuple[Any, ...] = (
        {"password": PASSWORD, "login": {"pin": "471147"}, "text": 1},
        {"password": PASSWORD, "unknown": 1},
        '{"password": "' + PASSWORD + '", "text": "' + KEY,
        f"{KEY} {PASSWORD}",
        [KEY, PASSWORD],
    )
    async with staged(sqlite_url, seen.tool()) as engine:
        for number, arguments in enumerate(refused):
            events = await events_of(engine, call(arguments, call_id=f"c{number}"))
            assert isinstance(events[-1], Failed)
            assert events[-1].kind == "invalid_arguments"
            if number < 4:
                shows_nothing(*events, *map(to_wire, events))
            assert KEY not in repr(events)
    assert seen.given == []


async def test_rules_and_the_tool_s_own_gate_see_what_would_run(sqlite_url: str) -> None:
    seen, asked = Seen(), []
    rule = Rule(id="r1", verdict="deny", predicate=f"password == '{PASSWORD}' && contains(text, '{KEY}')")

    def preview(self: Tool, action: str, arguments: dict[str, Any]) -> tuple[bool, bool]:
        asked.append(arguments)
        return False, False

    async with staged(sqlite_url, seen.tool(preview_decision=preview)) as engine:
        assert isinstance(await outcome_of(engine, call(SENT)), Executed)
        assert asked == [SENT]
        await engine.rules.add(rule, user_id="u")
        denied = await outcome_of(engine, call(SENT, call_id="c2"))
        assert isinstance(denied, Denied)
        assert isinstance(await outcome_of(engine, call({**SENT, "password": "other"}, call_id="c3")), Executed)


async def test_what_the_owner_pins_is_kept_as_a_reference_as_well(sqlite_url: str) -> None:
    seen = Seen()
    actions = [ActionSettings(name="bump", pinned={"text": KEY, "password": PASSWORD})]
    async with staged(sqlite_url, seen.tool(), rows=[row(actions=actions)]) as engine:
        executed = await outcome_of(engine, call({}))
        assert isinstance(executed, Executed)
        assert executed.resolved["parameters"]["text"].startswith("«secret t1/api_key ")
        shows_nothing(executed)
    assert seen.given == [{"text": KEY, "password": PASSWORD}]


async def test_errors_artifacts_and_what_is_asked_have_no_secrets(sqlite_url: str) -> None:
    asked: list[Any] = []

    async def runs(context: ToolContext, text: str, password: str = "") -> Any:
        if text == "raises":
            raise ValueError(f"{KEY} {password}")
        asked.append((context.request, context.answer))
        return InputRequired({"state": KEY}, f"because of {KEY}") if context.request is None else "done"

    parameters = {"type": "object", "properties": {"text": {}, "password": {"writeOnly": True}}}
    tool = tool_of(runs, parameters=parameters, wants_context=True)
    async with staged(sqlite_url, tool) as engine:
        failed = await outcome_of(engine, call({"text": "raises", "password": PASSWORD}))
        assert isinstance(failed, Failed)
        assert failed.message == "ValueError: «secret t1/api_key» ***"
        waits = await outcome_of(engine, call({"text": "asks"}, call_id="c2"))
        assert isinstance(waits, Paused)
        shows_nothing(waits)
        done = [event async for event in engine.submit_result("m:c2", {"typed": KEY}, CONTEXT)]
        assert isinstance(done[-1], Executed)
        assert KEY not in await kept(engine)
    assert asked == [(None, asked[0][1]), ({"state": KEY}, {"typed": KEY})]


async def test_without_a_key_one_is_made_and_without_a_place_for_it_the_call_fails(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CALLJOURNAL_MASTER_KEY", "CALLJOURNAL_MASTER_KEYS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    seen, plain = Seen(), ToolRow(id="t1", name="counter", user_id="u")
    async with staged_engine(sqlite_url, seen.tool(), rows=[plain]) as engine:
        assert isinstance(await outcome_of(engine, call({"text": "no secret"})), Executed)
    key = tmp_path / "state" / "calljournal" / "master.key"
    async with staged_engine(sqlite_url, seen.tool(), rows=[plain]) as engine:
        assert isinstance(await outcome_of(engine, call(SENT, call_id="c2")), Executed)
        assert key.exists()
        key.unlink()
        key.mkdir(mode=0o700)
    async with staged_engine(sqlite_url, seen.tool(), rows=[plain]) as engine:
        events = await events_of(engine, call(SENT, call_id="c3"))
        assert isinstance(events[-1], Failed)
        assert events[-1].kind == "load"
        assert "CALLJOURNAL_MASTER_KEY" in events[-1].message
        assert events[0].arguments["password"] == "***"  # type: ignore[union-attr]
    assert len(seen.given) == 2


async def test_calls_without_secrets_are_kept_verbatim(sqlite_url: str) -> None:
    odd = {"text": "«secret t1/api_key» «secret cjv1.k1.AAAA", "login": {"name": "cjv1.k1.AAAA"}}
    parameters = {"type": "object", "properties": {"text": {}, "login": {}}}
    seen = Seen()
    async with staged(sqlite_url, seen.tool(parameters=parameters), rows=[row(None)]) as engine:
        proposed, executed = await events_of(engine, call(odd))
        assert isinstance(proposed, Proposed)
        assert isinstance(executed, Executed)
        assert proposed.arguments == odd == executed.result
    assert seen.given == [odd]
