"""What runs while the journal is away, what does not, and what is left on the machine meanwhile (BEHAVIOUR 111)."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any, Literal

import pytest
from msgspec.structs import replace

from engine import EVERYONE, CallContext, Engine, InputRequired, Rule, Settings, Tool, ToolCall, ToolRow
from events import Executed, Failed, LogUnavailable, Proposed, Refused, to_wire
from tests.engine.gating import Device, command, device_row
from tests.engine.losing import LosableJournal, drained, in_log, on_losable, reader, spool_files, spooling
from tests.engine.staging import CONTEXT, bare, call, events_of, outcome_of, proved, row_of, stream_of, tool_of

__all__ = ()

pytestmark = pytest.mark.anyio

Setting = Literal["run_reads", "run", "refuse"]
EFFECTS: tuple[Literal["read", "write", "destroy"], ...] = ("read", "write", "destroy")
HEADLESS = CallContext(user_id="u", message_id="m", headless=True)
CLIENT = {"type": "function", "function": {"name": "paint", "parameters": {"type": "object", "properties": {}}}}


class Staged:
    """Tools of every effect, plain and gated, and what of them ran."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.tools = [self.tool(effect, gated) for effect in EFFECTS for gated in (False, True)]
        self.rows = [ToolRow(id=tool.name, name=tool.name) for tool in self.tools]

    def tool(self, effect: str, gated: bool) -> type[Tool]:
        name = f"{effect}{'_gated' if gated else ''}"

        async def runs(**_: Any) -> str:
            self.ran.append(name)
            return name

        schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
        gate = {"require_approval": gated}
        return tool_of(runs, name=name, action=name, parameters=schema, metadata=gate, effect=effect)


def permitted(setting: Setting, effect: str) -> bool:
    return setting == "run" or (setting == "run_reads" and effect == "read")


async def stays_refused(engine: Engine, wanted: ToolCall, context: CallContext = CONTEXT) -> str:
    """Assert that a call yields nothing, and return why."""
    stream = engine.execute(wanted, context)
    with pytest.raises(LogUnavailable) as refused:
        await anext(stream)
    return str(refused.value)


@pytest.mark.parametrize("setting", ["run_reads", "run", "refuse"])
async def test_behaviour_111_each_effect_under_each_setting(
    losable: LosableJournal, tmp_path: Path, setting: Setting
) -> None:
    staged, settings = Staged(), spooling(tmp_path, on_journal_failure=setting)
    async with on_losable(losable, settings, *staged.tools, rows=staged.rows) as engine:
        losable.go_away()
        yielded = []
        for effect in EFFECTS:
            if not permitted(setting, effect):
                await stays_refused(engine, call(name=effect, call_id=effect))
                continue
            proposed, executed = await events_of(engine, call(name=effect, call_id=effect))
            assert isinstance(proposed, Proposed)
            assert isinstance(executed, Executed)
            assert (proposed.late, proposed.position, executed.late, executed.position) == (True, None, True, None)
            assert executed.result == effect
            assert "position" not in to_wire(executed)
            yielded += [proposed, executed]
        assert staged.ran == [effect for effect in EFFECTS if permitted(setting, effect)]
        assert engine.statistics().spool.depth == len(staged.ran)
        assert bool(spool_files(settings)) == bool(staged.ran)
        losable.come_back()
        await drained(engine)
        assert [replace(record.event, position=None) for record in await in_log(engine)] == yielded
        for name in staged.ran:
            row = await row_of(engine, f"m:{name}")
            assert (row.status, row.result, row.late) == ("executed", name, True)
        assert spool_files(settings) == []
        await proved(engine)


@pytest.mark.parametrize("setting", ["run_reads", "run"])
async def test_behaviour_111_what_would_wait_or_is_denied_does_not_run(
    losable: LosableJournal, tmp_path: Path, setting: Setting
) -> None:
    """By the stored flag, watched or not; by its client; by what the tool itself says."""
    staged, settings = Staged(), spooling(tmp_path, on_journal_failure=setting)
    device = device_row("7", mode="full")
    asking = device_row("8", mode="ask")
    reading = type("Reading", (Device,), {"effect": "read", "name": "remote_device"})
    rows = [*staged.rows, device, asking]
    async with on_losable(losable, settings, *staged.tools, reading, rows=rows) as engine:
        losable.go_away()
        for effect in EFFECTS:
            wanted = call(name=f"{effect}_gated")
            why = await stays_refused(engine, wanted)
            assert ("to wait (require_approval)" in why) == permitted(setting, effect)
            await stays_refused(engine, wanted, HEADLESS)
            allowlisted = replace(HEADLESS, tool_allowlist=frozenset({f"{effect}_gated"}), message_id=f"h{effect}")
            if permitted(setting, effect):
                assert isinstance(await outcome_of(engine, wanted, allowlisted), Executed)
            else:
                await stays_refused(engine, wanted, allowlisted)
        await stays_refused(engine, call(name="paint"), replace(CONTEXT, client_tools=(CLIENT,)))
        own = CallContext(user_id="u", message_id="d", tool_ids=("7",))
        assert isinstance(await outcome_of(engine, command("ls"), own), Executed)
        await stays_refused(engine, command("rm -rf /", "c2"), own)
        await stays_refused(engine, command("ls", "c3"), replace(own, tool_ids=("8",)))
        assert staged.ran == [f"{effect}_gated" for effect in EFFECTS if permitted(setting, effect)]
        losable.come_back()
        await drained(engine)
        assert len({record.key for record in await in_log(engine)}) == len(staged.ran) + 1
        await proved(engine)


async def test_behaviour_111_rules_as_last_known_stop_and_never_open(losable: LosableJournal, tmp_path: Path) -> None:
    staged, settings = Staged(), spooling(tmp_path, on_journal_failure="run")
    async with on_losable(losable, settings, *staged.tools, rows=staged.rows) as engine:
        for rule in (
            Rule(verdict="allow", id="first", tool="destroy"),
            Rule(verdict="deny", id="second", tool="destroy"),
            Rule(verdict="ask", id="third", tool="write"),
            Rule(verdict="allow", id="fourth", tool="read_gated"),
            Rule(verdict="allow", id="fifth", tool="read"),
            Rule(verdict="allow", id="sixth", tool="write_gated", predicate="n < `5`"),
        ):
            await engine.rules.add(rule, user_id=EVERYONE)
        assert isinstance(await outcome_of(engine, call(name="destroy", call_id="known")), Executed)
        losable.go_away()
        assert "denied (rule:second@1)" in await stays_refused(engine, call(name="destroy"))
        assert "to wait (rule:third@1)" in await stays_refused(engine, call(name="write"))
        assert "to wait (require_approval)" in await stays_refused(engine, call(name="read_gated"))
        assert "to wait (require_approval)" in await stays_refused(engine, call({"n": 1}, name="write_gated"))
        executed = await outcome_of(engine, call(name="read"))
        assert isinstance(executed, Executed)
        assert executed.rule is None
        assert staged.ran == ["destroy", "read"]


async def test_rules_that_were_never_read_stop_everything(losable: LosableJournal, tmp_path: Path) -> None:
    staged, settings = Staged(), spooling(tmp_path, on_journal_failure="run")
    async with on_losable(losable, settings, *staged.tools, rows=staged.rows) as engine:
        await engine.rules.add(Rule(verdict="deny", id="no", tool="destroy"), user_id="v")
    async with on_losable(losable, settings, *staged.tools, rows=staged.rows) as engine:
        losable.go_away()
        assert "rules are not known" in await stays_refused(engine, call(name="read"))
        losable.come_back()
        assert isinstance(await outcome_of(engine, call(name="read")), Executed)
        losable.go_away()
        assert isinstance(await outcome_of(engine, call(name="read", call_id="c2")), Executed)
        unread = CallContext(user_id="v", message_id="m")
        assert "rules are not known" in await stays_refused(engine, call(name="destroy"), unread)
        assert staged.ran == ["read", "read"]


async def test_what_is_refused_anyway_is_told_the_model(losable: LosableJournal, tmp_path: Path) -> None:
    staged, settings = Staged(), spooling(tmp_path)
    async with on_losable(losable, settings, *staged.tools, rows=staged.rows) as engine:
        losable.go_away()
        proposed, failed = await events_of(engine, call({"n": "one"}, name="read"))
        assert isinstance(failed, Failed)
        assert (failed.kind, failed.late, failed.position) == ("invalid_arguments", True, None)
        await stays_refused(engine, call({"n": "one"}, name="write"))
        await stays_refused(engine, call(name="nothing"))
        losable.come_back()
        await drained(engine)
        found = [replace(event, position=None) for event in await stream_of(engine)]
        assert found == [proposed, failed]
        assert staged.ran == []
        await proved(engine)


@pytest.mark.parametrize("setting", ["run_reads", "run", "refuse"])
async def test_an_outcome_is_spooled_whatever_the_setting(
    losable: LosableJournal, tmp_path: Path, setting: Setting
) -> None:
    """Its proposal was durable: that it may not be lost is no matter of what may begin."""

    async def runs() -> str:
        losable.go_away()
        return "done"

    settings = spooling(tmp_path, on_journal_failure=setting)
    for context in (CONTEXT, bare):
        async with on_losable(losable, settings, tool_of(runs)) as engine:
            proposed, executed = await events_of(engine, call(), context)
            assert isinstance(executed, Executed)
            assert (proposed.late, executed.late, executed.position) == (False, True, None)
            assert proposed.position is not None
            losable.come_back()
            await drained(engine)
            row = await row_of(engine, proposed.key)
            assert (row.status, row.late) == ("confirmed" if context is bare else "executed", True)
            await proved(engine)


async def test_a_failure_and_a_tool_that_asks_for_input(losable: LosableJournal, tmp_path: Path) -> None:
    async def breaks() -> None:
        raise ValueError("broken")

    async def asks() -> InputRequired:
        return InputRequired({"what": "?"})

    tools = [reader(breaks, name="breaks", action="breaks"), reader(asks, name="asks", action="asks")]
    async with on_losable(losable, spooling(tmp_path), *tools) as engine:
        losable.go_away()
        broke = await outcome_of(engine, call(name="breaks"))
        assert isinstance(broke, Failed)
        assert (broke.kind, broke.exception_type, broke.late) == ("exception", "ValueError", True)
        asked = await outcome_of(engine, call(name="asks", call_id="c2"))
        assert isinstance(asked, Failed)
        assert "cannot wait" in asked.message
        losable.come_back()
        await drained(engine)
        assert (await row_of(engine)).status == "failed"
        assert (await row_of(engine, "m:c2")).status == "failed"
        await proved(engine)


async def test_a_pause_that_cannot_be_written_closes_its_call(losable: LosableJournal, tmp_path: Path) -> None:
    async def asks() -> InputRequired:
        losable.go_away()
        return InputRequired({"what": "?"})

    async with on_losable(losable, spooling(tmp_path, on_journal_failure="run"), tool_of(asks)) as engine:
        with pytest.raises(LogUnavailable):
            await events_of(engine, call())
        losable.come_back()
        await drained(engine)
        _, failed = await stream_of(engine)
        assert isinstance(failed, Failed)
        assert "may have had its effect" in failed.message
        await proved(engine)


async def test_the_spool_is_its_owners_alone_and_in_its_journals_form(losable: LosableJournal, tmp_path: Path) -> None:
    settings = spooling(tmp_path)
    staged = Staged()
    async with on_losable(losable, settings, *staged.tools, rows=staged.rows) as engine:
        losable.go_away()
        await outcome_of(engine, call(name="read"))
        (file,) = spool_files(settings)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        assert "canary" not in str(file)
        losable.come_back()


async def test_null_and_memory_spool_nothing(tmp_path: Path) -> None:
    staged, settings = Staged(), spooling(tmp_path)
    for url in ("null://", "sqlite://"):
        async with Engine.open(url, tools=staged.tools, rows=staged.rows, settings=settings) as engine:
            assert isinstance(await outcome_of(engine, call(name="read")), Executed)
            assert engine.statistics().spool.depth == 0
    assert not (tmp_path / "spool").exists()


async def test_an_unknown_setting_is_refused() -> None:
    with pytest.raises(Refused, match="on_journal_failure"):
        async with Engine.open("null://", settings=Settings(on_journal_failure="hope")):  # type: ignore[arg-type]
            pass
