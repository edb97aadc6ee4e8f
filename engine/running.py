"""Running one tool: its deadline, its thread if it is sync, and what its ending means (DESIGN 6, Executing)."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterable, Callable, Iterator
from functools import partial
from time import perf_counter
from typing import Any, Final, TypeAlias

import anyio
import msgspec

from engine.contract import ToolResult
from engine.first_step import Rest, begin
from engine.results import Finished, finish, finish_result
from engine.settings import Limits
from engine.threads import ThreadJob, Threads
from events.bridge import NativeCancellations, cancellation_requested, renew_cancellation
from events.types import FailureKind

__all__ = ("Broke", "Returned", "Run", "ToolRunner", "comes_from_outside", "describe_exception")


class Returned(msgspec.Struct, frozen=True):
    """The tool returned ``value`` after ``duration`` seconds.

    :ivar finished: the value in its finished form, where the tool's own iterator had to be listed for that
    """

    value: Any
    duration: float
    finished: Finished | None = None


class Broke(msgspec.Struct, frozen=True):
    """The tool did not come to a result; ``error`` is what it raised, if it raised."""

    kind: FailureKind
    message: str
    exception_type: str | None = None
    error: BaseException | None = None


Run: TypeAlias = Returned | Broke

_COMPLETE: Final = frozenset({str, dict, list, int, float, bool, type(None)})


class ToolRunner:
    """Runs actions of tools, sync ones in worker threads.

    :param limits: ``sync_threads`` bounds the threads; the others, what becomes of an iterator's items
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._threads = Threads(limits.sync_threads)

    def __repr__(self) -> str:
        return f"<ToolRunner {self._threads!r}>"

    async def run(self, action: Callable[[], Any], is_async: bool, timeout: float, begins: Callable[[], None]) -> Run:
        """Run a tool's action to its end or its deadline, in seconds; ``begins`` is called just before the action.

        Whatever the tool raises is returned, except a cancellation that came from outside and KeyboardInterrupt, which
        are raised: the caller closes the call. Once the action has returned, that is what counts, cancelled or not.
        What it returns as an iterator is listed here, for that is the tool's work too. A sync action runs in a
        worker thread with the caller's context variables; at its deadline the thread is left behind, for it cannot
        be stopped.
        """
        cancellations = NativeCancellations()
        job = None if is_async else self._threads.job(partial(self._listed, action), begins)
        if job is None:
            begins()
        run = await self._attempt(action, job, timeout, cancellations)
        if cancellations.came():
            # A tool that caught the cancellation of its caller's task has not thereby called it off.
            renew_cancellation()
        return run

    async def _attempt(
        self, action: Callable[[], Any], job: ThreadJob | None, timeout: float, cancellations: NativeCancellations
    ) -> Run:
        started = perf_counter()
        failure: BaseException | None = None
        deadline = anyio.move_on_after(None)
        try:
            with deadline:
                value = begin(action() if job is None else job.run())
                if type(value) not in _COMPLETE:
                    # Only now there is something to wait for, and to set a timer for: many a tool never waits.
                    cancellations.watch()
                    deadline.deadline = anyio.current_time() + timeout - (perf_counter() - started)
                    value = await self._completed(await value if type(value) is Rest else value)
                return _returned(value, started)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            # Not swallowed: a cancellation from outside goes on, anything else becomes a Failed event.
            if comes_from_outside(error) and not _has_returned(job):
                raise
            failure = error
        if job is not None and _has_returned(job):
            try:
                return _returned(job.outcome(), started)
            except BaseException as error:
                failure = error
        late = f"the tool did not finish within {timeout:g} s" if deadline.cancel_called else ""
        return _late(late, job) if failure is None else _raised(failure, late)

    def _listed(self, action: Callable[[], Any]) -> Any:
        """Run a sync action, and list what it returns, in its thread."""
        value = action()
        return finish(value, self._limits) if isinstance(_content(value), Iterator) else value

    async def _completed(self, value: Any) -> Any:
        """Bring what is not there yet: what an awaitable returns, what an iterator yields."""
        if type(value) in _COMPLETE:
            return value
        if inspect.isawaitable(value):
            value = await value
        content = _content(value)
        if isinstance(content, AsyncIterable):
            return await finish_result(value, self._limits)
        if isinstance(content, Iterator):
            return await self._threads.job(partial(finish, value, self._limits)).run()
        return value


def _content(value: Any) -> Any:
    return value.data if isinstance(value, ToolResult) else value


def _returned(value: Any, started: float) -> Returned:
    duration = perf_counter() - started
    return Returned(None, duration, value) if isinstance(value, Finished) else Returned(value, duration)


def _has_returned(job: ThreadJob | None) -> bool:
    return job is not None and job.ended and not job.awaitable


def _late(late: str, job: ThreadJob | None) -> Broke:
    if job is None:
        return Broke("timeout", late)
    if not job.started:
        return Broke("timeout", f"{late}: it was not run, for no thread was free; other tools hang in theirs")
    return Broke("timeout", f"{late}; it runs in a thread that cannot be stopped, so its work may still complete")


def _raised(error: BaseException, late: str) -> Broke:
    described = describe_exception(error)
    if late:
        return Broke("timeout", f"{late}; stopped, it raised {described}", type(error).__name__, error)
    return Broke("exception", described, type(error).__name__, error)


def comes_from_outside(error: BaseException) -> bool:
    """Tell whether what a tool's code let through is not its own: KeyboardInterrupt, or its caller's cancellation."""
    leaves = list(_leaves(error))
    if any(isinstance(leaf, KeyboardInterrupt) for leaf in leaves):
        return True
    cancelled = anyio.get_cancelled_exc_class()
    return any(isinstance(leaf, cancelled) for leaf in leaves) and cancellation_requested()


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in _leaves(inner)]
    return [error]


def describe_exception(error: BaseException) -> str:
    """Return what an exception says, with its type; of a group, what its parts say (EXECUTE-05)."""
    return "; ".join(_named(leaf) for leaf in _leaves(error))


def _named(error: BaseException) -> str:
    try:
        text = str(error).strip()
    except KeyboardInterrupt:
        raise
    except BaseException:  # its own __str__ is broken, and the call must still be closed
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
