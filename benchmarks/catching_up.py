"""A subscriber that catches up on a long log in a process of its own while this one appends."""

from __future__ import annotations

import subprocess
import sys
from contextlib import aclosing

from benchmarks.figures import Figure
from benchmarks.log import measure_appends
from benchmarks.loops import run_on
from benchmarks.scale import Scale
from engine.migration import CHAINS
from events.opening import open_log
from projections.attempts import AttemptsProjection

__all__ = ("measure_catching_up",)

_CALLERS = 64
_GOAL = 1 / 3


def measure_catching_up(name: str, url: str, count: int, scale: Scale) -> Figure:
    """Return what the subscriber leaves of the append rate, alternating with and without it.

    :param name: the figure's name, with a place for what was done
    """
    shares = [_share(url, count, scale) for _ in range(scale.rounds)]
    return Figure.of(name.format("appends while a subscriber catches up on"), "of alone", shares, _GOAL)


def _share(url: str, count: int, scale: Scale) -> float:
    appends = scale.appends_by(_CALLERS)
    alone = run_on("asyncio", measure_appends, url, _CALLERS, appends).rate
    with _Subscriber(url, count):
        beside = run_on("asyncio", measure_appends, url, _CALLERS, appends).rate
    return beside / alone


class _Subscriber:
    """The other process; entered once it has read its first events, ended on leaving."""

    def __init__(self, url: str, count: int) -> None:
        command = [sys.executable, "-m", "benchmarks.catching_up", url, str(count)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> None:
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "reading\n"

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


async def _catch_up(url: str, count: int) -> None:
    """Read ``count`` events over and over, so that there is no end to catching up while the other process appends."""
    log = await open_log(url, AttemptsProjection(), CHAINS)
    async with aclosing(log):
        told = False
        while True:
            async with log.subscribe(None) as subscription:
                async for recorded in subscription:
                    if not told:
                        told = True
                        sys.stdout.write("reading\n")
                        sys.stdout.flush()
                    if recorded.position >= count:
                        break


if __name__ == "__main__":
    run_on("asyncio", _catch_up, sys.argv[1], int(sys.argv[2]))
