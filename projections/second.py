"""A second process that does portions of the work on a log: it has an interpreter, and a processor, of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress

import anyio
import msgspec
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream
from sqlalchemy import select

from events.log import EventLog
from events.schema import events
from events.store import Reachable
from projections.portions import LostError, Part, Portion

__all__ = ("PREFIX", "Opening", "Second", "newest_event", "second_process", "wants_second")

PREFIX = 4
"""Bytes that say how long the message behind them is, the first one first."""

_WORTHWHILE = 200_000
"""Positions; below, one process needs four seconds at most, and a second one half a second to start."""

_PATIENCE = 120.0
_PATIENCE_AT_THE_END = 5.0


class Opening(msgspec.Struct, frozen=True):
    """What the second process is told first: which database, and by what to know the log (see :func:`newest_event`)."""

    url: str
    head: int
    newest: str

    def __repr__(self) -> str:
        return f"<Opening up to {self.head}>"


class Second:
    """Does portions of the work, one after another, in another process."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._requests = process.stdin
        self._answers = BufferedByteReceiveStream(process.stdout)
        self._decoder = msgspec.msgpack.Decoder(Part)

    async def parts(self, portion: Portion) -> AsyncGenerator[Part, None]:
        """See ``Hands.parts``."""
        await self.tell(portion)
        upto = portion.after
        while upto < portion.upto:
            part = await self._part()
            yield part
            upto = part.upto

    async def tell(self, message: msgspec.Struct) -> None:
        """Send a message. :raises LostError: if nobody listens any more"""
        text = msgspec.msgpack.encode(message)
        try:
            await self._requests.send(len(text).to_bytes(PREFIX) + text)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError) as error:
            raise LostError from error

    async def _part(self) -> Part:
        try:
            with anyio.fail_after(_PATIENCE):
                size = int.from_bytes(await self._answers.receive_exactly(PREFIX))
                return self._decoder.decode(await self._answers.receive_exactly(size))
        except (anyio.IncompleteRead, anyio.BrokenResourceError, OSError, msgspec.DecodeError) as error:
            raise LostError from error


def wants_second(log: EventLog, amount: int, processes: int | None) -> bool:
    """Tell whether a second process is to help with work over ``amount`` positions; see ``verify``."""
    if processes is None and (amount < _WORTHWHILE or _processors() < 2):
        return False
    return processes != 1 and _url(log) is not None


def _processors() -> int:
    # The first is Python 3.13's; the second, which knows what this process may use, is not everywhere.
    if count := getattr(os, "process_cpu_count", None):
        return count() or 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _url(log: EventLog) -> str | None:
    """Return what another process can open the same log with, None where none can."""
    if not log.codec.standard or not isinstance(log.store, Reachable):
        return None
    # A frozen application is its own interpreter: it would start itself.
    return None if getattr(sys, "frozen", False) or not sys.executable else log.store.url


async def newest_event(log: EventLog, upto: int) -> str:
    """Return the id of the newest event up to a position: a copy that lags behind, or another log, has another one.

    :raises LogUnavailable: if the database cannot be read
    """
    some = select(events.c.id).where(events.c.position <= upto).order_by(events.c.position.desc()).limit(1)
    rows = await log.store.read(some)
    return rows[0][0] if rows else ""


@asynccontextmanager
async def second_process(log: EventLog, head: int) -> AsyncIterator[Second]:
    """Start the process; it ends with the context, and with this process, however that ends.

    :param head: the position up to which it must see the log
    :raises LostError: if it cannot be started
    :raises LogUnavailable: if the database cannot be read
    """
    url = _url(log)
    if url is None:
        raise LostError
    opening = Opening(url, head, await newest_event(log, head))
    process = await _started()
    try:
        second = Second(process)
        await second.tell(opening)
        yield second
    except BaseException:
        with suppress(ProcessLookupError):
            process.kill()
        raise
    finally:
        with anyio.move_on_after(_PATIENCE_AT_THE_END):
            await process.aclose()


async def _started() -> Process:
    # The URL is not among the arguments, which everybody can read. What is imported comes from where ours came from.
    command = [sys.executable, "-P", "-m", "projections.second_main"]
    places = os.pathsep.join([place or os.getcwd() for place in sys.path])
    try:
        return await anyio.open_process(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": places},
            # The terminal's interrupt is for this process, which ends the other.
            start_new_session=True,
        )
    except (OSError, RuntimeError) as error:
        raise LostError from error
