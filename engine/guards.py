"""Result guards: what looks at every result's text before anybody else does (DESIGN 6, BEHAVIOUR 137-139)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Sequence
from inspect import isawaitable, iscoroutinefunction
from typing import ClassVar, Final, TypeAlias

import anyio
import anyio.to_thread
import msgspec

from engine.contract import ToolResult
from engine.results import Finished, finish_result
from engine.settings import Limits

__all__ = (
    "WITHHELD",
    "Flag",
    "GuardVerdict",
    "Guarded",
    "Inspected",
    "Pass",
    "Redact",
    "ResultGuard",
    "Withhold",
    "guard_result",
)

WITHHELD: Final = "The result was withheld by a guard."
"""All that is ever said of a result that was withheld."""


class Pass(msgspec.Struct, frozen=True):
    """The result may be seen as it is."""


class Flag(msgspec.Struct, frozen=True):
    """The result may be seen as it is; the reason is noted."""

    reason: str


class Redact(msgspec.Struct, frozen=True):
    """The result is replaced by this text; where a structured result's text is still JSON, it stays structured."""

    text: str
    reason: str = "redacted"


class Withhold(msgspec.Struct, frozen=True):
    """Nobody may see the result; the reason is noted and must quote nothing of it."""

    reason: str


GuardVerdict: TypeAlias = Pass | Flag | Redact | Withhold


class Inspected(msgspec.Struct, frozen=True, kw_only=True):
    """What a guard is told besides the text: whose call of what it was."""

    user_id: str | None
    tool_name: str
    action_name: str
    structured: bool


class ResultGuard(ABC):
    """Looks at results. ``fail_open``: a failure of the guard lets the result pass (it is noted either way).

    ``name`` (else the class's) stands in the note; ``timeout`` is how many seconds it may take before it has failed.
    """

    name: ClassVar[str] = ""
    fail_open: ClassVar[bool] = False
    timeout: ClassVar[float] = 10.0

    @abstractmethod
    def inspect(self, text: str, call: Inspected, /) -> GuardVerdict | Awaitable[GuardVerdict]:
        """Judge one result's text (a structured one's JSON text), clean of control characters.

        Sync or async; a sync one runs in a worker thread.
        """


class Guarded(msgspec.Struct, frozen=True):
    """A result after all guards, and what they did, for ``Executed.guard``; None: nothing worth a note."""

    finished: Finished
    note: str | None


async def guard_result(finished: Finished, guards: Sequence[ResultGuard], call: Inspected, limits: Limits) -> Guarded:
    """Show a result to each guard in turn; each sees what the one before it left, and after Withhold none looks.

    A guard that raises, answers something else, or takes too long withholds, unless it is declared ``fail_open``.
    The status stays what the result said of itself. A cancellation passes through: then nobody sees the result.
    """
    notes: list[str] = []
    for guard in guards:
        verdict, note = await _ask(guard, finished, call)
        if note is not None:
            notes.append(f"{_name_of(guard)}: {note}")
        if isinstance(verdict, Redact):
            finished = await _replaced(finished, verdict.text, limits)
        elif isinstance(verdict, Withhold):
            finished = await _replaced(finished, WITHHELD, limits, structured=False)
            break
    return Guarded(finished, "; ".join(notes) or None)


async def _ask(guard: ResultGuard, finished: Finished, call: Inspected) -> tuple[GuardVerdict, str | None]:
    """Return the verdict and what to note of it; the note never quotes an exception, which may quote the result."""
    try:
        with anyio.fail_after(guard.timeout):
            verdict = await _inspect(guard, finished.text, call)
    except Exception as error:  # whatever is wrong with a guard, the result must not pass on that account
        return _failed(guard, type(error).__name__)
    match verdict:
        case Pass():
            return verdict, None
        case Flag(reason=reason):
            return verdict, f"flagged ({reason})"
        case Redact(reason=reason):
            return verdict, reason if reason == "redacted" else f"redacted ({reason})"
        case Withhold(reason=reason):
            return verdict, f"withheld ({reason})"
    return _failed(guard, f"answered {type(verdict).__name__}")


async def _inspect(guard: ResultGuard, text: str, call: Inspected) -> object:
    if iscoroutinefunction(guard.inspect):
        return await guard.inspect(text, call)
    answer = await anyio.to_thread.run_sync(guard.inspect, text, call, abandon_on_cancel=True)
    return await answer if isawaitable(answer) else answer


def _failed(guard: ResultGuard, why: str) -> tuple[GuardVerdict, str]:
    if guard.fail_open:
        return Pass(), f"could not look ({why}), passed"
    return Withhold(why), f"could not look ({why}), withheld"


async def _replaced(finished: Finished, text: str, limits: Limits, *, structured: bool = True) -> Finished:
    content: object = text
    if structured and not isinstance(finished.value, str):
        try:
            content = msgspec.json.decode(text)
        except msgspec.DecodeError:
            content = text
    other = await finish_result(ToolResult(content), limits)
    return msgspec.structs.replace(other, status=finished.status)


def _name_of(guard: ResultGuard) -> str:
    return guard.name or type(guard).__name__
