"""Result guards around whole calls: what the event, the log, the row, the wire and the model have of a result."""

from __future__ import annotations

from typing import Any

import pytest

from engine import Engine, ResultGuard
from engine.guards import WITHHELD, Flag, GuardVerdict, Inspected, Redact, Withhold
from events import Executed, to_wire
from tests.engine.staging import call, events_of, outcome_of, proved, row_of, staged_engine, stream_of, tool_of

__all__ = ()

pytestmark = pytest.mark.anyio

SECRET = "canary-77aa"
STRUCTURED = {"name": "Ann", "key": SECRET, "n": [1, None]}


class Judge(ResultGuard):
    """Gives the verdict that it was made with, or raises it, and keeps what it was shown."""

    name = "judge"

    def __init__(self, verdict: GuardVerdict | Exception | None) -> None:
        self.verdict = verdict
        self.seen: list[tuple[str, Inspected]] = []

    def inspect(self, text: str, call: Inspected, /) -> GuardVerdict:
        self.seen.append((text, call))
        if isinstance(self.verdict, Exception):
            raise self.verdict
        return self.verdict or Redact(text.replace(SECRET, "***"))


class Lenient(Judge):
    fail_open = True


async def everything(engine: Engine, result: Executed) -> str:
    """Return all that is to be had of the call ``m:c1``, by everybody."""
    assert (await stream_of(engine))[-1] == result
    row = await row_of(engine)
    assert row.result == result.result
    again = await events_of(engine, call())
    assert again[-1] == result
    told = [await engine.tool_results("m", user_id="u", family=family) for family in ("openai", "anthropic", "google")]
    return repr([result, to_wire(result), row, told, await stream_of(engine)])


async def guarded(engine: Engine) -> Executed:
    executed = await outcome_of(engine, call())
    assert isinstance(executed, Executed)
    await proved(engine)
    return executed


async def text() -> str:
    return f"a {SECRET} b"


async def structured() -> Any:
    return STRUCTURED


@pytest.mark.parametrize("guards", [(), (Judge(Flag("odd")),)], ids=["no guard", "flags"])
async def test_behaviour_137_nothing_changes(journal_url: str, guards: tuple[Judge, ...]) -> None:
    async with staged_engine(journal_url, tool_of(structured), guards=guards) as engine:
        executed = await guarded(engine)
        assert executed.result == STRUCTURED
        assert executed.guard == ("judge: flagged (odd)" if guards else None)
        assert SECRET in await everything(engine, executed)


async def test_behaviour_137_a_structured_result_is_looked_through_as_its_json_text(journal_url: str) -> None:
    guard = Judge(Flag("seen"))
    async with staged_engine(journal_url, tool_of(structured), guards=[guard]) as engine:
        await guarded(engine)
    shown = f'{{"name":"Ann","key":"{SECRET}","n":[1,null]}}'
    assert guard.seen == [(shown, Inspected(user_id="u", tool_name="counter", action_name="bump", structured=True))]


@pytest.mark.parametrize("verdict", [Withhold("names somebody"), ValueError(f"cannot read {SECRET}")])
@pytest.mark.parametrize("runs", [text, structured])
async def test_behaviour_137_138_139_what_is_withheld_is_nowhere(journal_url: str, verdict: Any, runs: Any) -> None:
    """By its verdict, or because it broke, which a guard that says nothing else must not do unpunished."""
    async with staged_engine(journal_url, tool_of(runs), guards=[Judge(verdict)]) as engine:
        executed = await guarded(engine)
        assert (executed.result, executed.preview, executed.status) == (WITHHELD, WITHHELD, "completed")
        assert executed.guard is not None
        assert "withheld" in executed.guard
        shown = await everything(engine, executed)
        assert SECRET not in shown
        assert shown.count(WITHHELD) >= 5


async def test_behaviour_138_a_redacted_text_is_all_there_is(journal_url: str) -> None:
    async with staged_engine(journal_url, tool_of(text), guards=[Judge(None)]) as engine:
        executed = await guarded(engine)
        assert (executed.result, executed.preview, executed.status) == ("a *** b", "a *** b", "completed")
        assert executed.guard == "judge: redacted"
        assert SECRET not in await everything(engine, executed)


async def test_behaviour_139_declared_fail_open_it_passes_and_the_failure_is_in_the_event(journal_url: str) -> None:
    guard = Lenient(ConnectionError(f"no answer about {SECRET}"))
    async with staged_engine(journal_url, tool_of(text), guards=[guard]) as engine:
        executed = await guarded(engine)
        assert executed.result == f"a {SECRET} b"
        assert executed.guard == "judge: could not look (ConnectionError), passed"
        assert (await stream_of(engine))[-1] == executed
