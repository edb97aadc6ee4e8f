"""The second process: ``python -m projections.second_main``, started by ``projections.second``.

It is told on its standard input what to do, and answers on its standard output. It ends when either is closed.
"""

from __future__ import annotations

import gc
import sys
from contextlib import aclosing, suppress
from typing import BinaryIO

import anyio
import msgspec

from events.opening import open_log
from projections.attempts import AttemptsProjection
from projections.hand import Hand
from projections.portions import Part, Portion
from projections.second import PREFIX, Opening, newest_event

__all__ = ("main",)


def main() -> None:
    """Do portions until there are no more."""
    # What lives long is there by now, and pages of thousands of objects are no reason to look for cycles.
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    _widen(sys.stdout.buffer)
    anyio.run(_serve, sys.stdin.buffer, sys.stdout.buffer)


def _widen(answers: BinaryIO) -> None:
    # Linux's pipes hold 64 KB, less than a page of rows: with room for one, neither side waits for the other.
    with suppress(ImportError, AttributeError, OSError):
        import fcntl

        fcntl.fcntl(answers, fcntl.F_SETPIPE_SZ, 1 << 20)


async def _serve(requests: BinaryIO, answers: BinaryIO) -> None:
    # It waits in the middle of the event loop: there is nobody else here.
    opening = msgspec.msgpack.decode(_read(requests), type=Opening)
    log = await open_log(opening.url, AttemptsProjection(), ())
    async with aclosing(log):
        if await newest_event(log, opening.head) != opening.newest:
            return
        hand = Hand(log)
        while request := _read(requests):
            portion = msgspec.msgpack.decode(request, type=Portion)
            async with aclosing(hand.parts(portion)) as parts:
                async for part in parts:
                    _write(answers, part)


def _read(requests: BinaryIO) -> bytes:
    size = int.from_bytes(requests.read(PREFIX))
    return requests.read(size)


def _write(answers: BinaryIO, part: Part) -> None:
    text = msgspec.msgpack.encode(part)
    answers.write(len(text).to_bytes(PREFIX) + text)
    answers.flush()


if __name__ == "__main__":
    main()
