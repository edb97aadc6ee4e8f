"""Result guards: what they see, what they can do, and that a broken one lets nothing through."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, ClassVar

import anyio
import pytest

from engine.contract import ToolResult
from engine.guards import (
    WITHHELD,
    Flag,
    Guarded,
    GuardVerdict,
    Inspected,
    Pass,
    Redact,
    ResultGuard,
    Withhold,
    guard_result,
)
from engine.results import finish
from engine.settings import Limits

pytestmark = pytest.mark.anyio

CALL = Inspected(user_id="ada", tool_name="counter", action_name="bump", structured=False)
CANARY = "canary-4711"


class Judge(ResultGuard):
    """Says what it is told to say, and keeps what it was shown."""

    name = "judge"

    def __init__(self, answer: Callable[[str], Any]) -> None:
        self.answer = answer
        self.seen: list[str] = []

    def inspect(self, text: str, call: Inspected, /) -> GuardVerdict:
        self.seen.append(text)
        verdict: GuardVerdict = self.answer(text)
        return verdict


class AsyncJudge(Judge):
    async def inspect(self, text: str, call: Inspected, /) -> GuardVerdict:  # type: ignore[override]
        await anyio.lowlevel.checkpoint()
        return super().inspect(text, call)


class Open(Judge):
    fail_open = True


class Stuck(ResultGuard):
    timeout: ClassVar[float] = 0.01

    async def inspect(self, text: str, call: Inspected, /) -> GuardVerdict:
        await anyio.sleep_forever()
        return Pass()


class StuckOpen(Stuck):
    fail_open = True


class StuckThread(ResultGuard):
    timeout: ClassVar[float] = 0.01

    def __init__(self) -> None:
        self.release = threading.Event()

    def inspect(self, text: str, call: Inspected, /) -> GuardVerdict:
        self.release.wait(10)
        return Pass()


def broken(text: str) -> Any:
    raise ValueError(f"cannot read {text}")


async def guarded(raw: Any, *guards: ResultGuard) -> Guarded:
    return await guard_result(finish(raw), guards, CALL, Limits())


async def test_behaviour_137_without_guards_and_with_one_that_only_flags_nothing_changes() -> None:
    finished = finish({"a": 1})
    assert await guard_result(finished, (), CALL, Limits()) == Guarded(finished, None)
    flagged = await guard_result(finished, [Judge(lambda _: Flag("odd"))], CALL, Limits())
    assert flagged.finished is finished
    assert flagged.note == "judge: flagged (odd)"
    passed = await guard_result(finished, [Judge(lambda _: Pass())], CALL, Limits())
    assert passed == Guarded(finished, None)


@pytest.mark.parametrize("kind", [Judge, AsyncJudge])
async def test_behaviour_137_139_a_guard_that_raises_withholds(kind: type[Judge]) -> None:
    outcome = await guarded(CANARY, kind(broken))
    assert outcome.finished.value == WITHHELD
    assert outcome.finished.status == "completed"
    assert outcome.note == "judge: could not look (ValueError), withheld"
    assert CANARY not in repr(outcome)


@pytest.mark.parametrize("kind", [Judge, AsyncJudge])
async def test_behaviour_137_a_structured_result_is_shown_as_its_json_text_after_sanitising(kind: type[Judge]) -> None:
    guard = kind(lambda _: Pass())
    await guarded({"k\0": "a\x1bb", "n": [1, None]}, guard)
    await guarded("te\0xt", guard)
    assert guard.seen == ['{"k":"ab","n":[1,null]}', "text"]


async def test_behaviour_138_a_redacted_text_takes_the_results_place_everywhere() -> None:
    outcome = await guarded(f"a {CANARY} b", Judge(lambda text: Redact(text.replace(CANARY, "*"))))
    finished = outcome.finished
    assert (finished.value, finished.text, finished.preview, finished.encoded) == (
        "a * b",
        "a * b",
        "a * b",
        b'"a * b"',
    )
    assert finished.status == "completed"
    assert outcome.note == "judge: redacted"
    assert CANARY not in repr(outcome)


async def test_behaviour_138_a_structured_result_stays_structured_where_its_text_is_still_json() -> None:
    mask = Judge(lambda text: Redact(text.replace(CANARY, "*")))
    assert (await guarded({"a": [CANARY]}, mask)).finished.value == {"a": ["*"]}
    wipe = Judge(lambda text: Redact("gone", "names a person"))
    outcome = await guarded({"a": [CANARY]}, wipe)
    assert outcome.finished.value == "gone"
    assert outcome.note == "judge: redacted (names a person)"
    assert (await guarded('{"a":1}', Judge(lambda text: Redact('{"b":2}')))).finished.value == '{"b":2}'


async def test_behaviour_138_what_is_withheld_leaves_a_fixed_note_and_no_later_guard_looks() -> None:
    after = Judge(lambda _: Pass())
    outcome = await guarded({"secret": CANARY}, Judge(lambda _: Withhold("secret")), after)
    assert outcome.finished.value == outcome.finished.preview == WITHHELD
    assert outcome.note == "judge: withheld (secret)"
    assert after.seen == []
    assert CANARY not in repr(outcome)


async def test_behaviour_138_the_status_stays_what_the_result_said() -> None:
    outcome = await guarded(ToolResult("boom", status="error"), Judge(lambda _: Withhold("x")))
    assert outcome.finished.status == "error"
    outcome = await guarded("fine", Judge(lambda _: Redact("Error: x")))
    assert outcome.finished.status == "completed"


async def test_behaviour_139_a_guard_declared_fail_open_lets_pass_and_the_failure_is_noted() -> None:
    for guard in (Open(broken), StuckOpen()):
        finished = finish("text")
        outcome = await guard_result(finished, [guard], CALL, Limits())
        assert outcome.finished is finished
        assert outcome.note is not None
        assert "could not look" in outcome.note
        assert "passed" in outcome.note


async def test_behaviour_139_a_guard_without_an_answer_withholds() -> None:
    for guard in (Stuck(), Judge(lambda _: None), Judge(lambda _: "pass")):
        outcome = await guarded(CANARY, guard)
        assert outcome.finished.value == WITHHELD
        assert outcome.note is not None
        assert "could not look" in outcome.note


async def test_behaviour_139_a_sync_guard_that_hangs_does_not_hold_up_the_loop() -> None:
    guard = StuckThread()
    outcome = await guarded(CANARY, guard)
    guard.release.set()
    assert outcome.finished.value == WITHHELD
    assert outcome.note == "StuckThread: could not look (TimeoutError), withheld"


async def test_each_guard_sees_what_the_one_before_it_left() -> None:
    last = Judge(lambda _: Flag("seen"))
    outcome = await guarded(
        "abc", Judge(lambda text: Redact(text + "d\0")), Judge(lambda text: Redact(text + "e")), last
    )
    assert last.seen == ["abcde"]
    assert outcome.note == "judge: redacted; judge: redacted; judge: flagged (seen)"


async def test_a_cancellation_passes_through_a_guard() -> None:
    class Waiting(ResultGuard):
        async def inspect(self, text: str, call: Inspected, /) -> GuardVerdict:
            scope.cancel()
            await anyio.sleep_forever()
            return Pass()

    with anyio.CancelScope() as scope:
        await guarded("text", Waiting())
        pytest.fail("the cancellation was swallowed")
    assert scope.cancelled_caught
