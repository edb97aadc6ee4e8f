"""The places of the threads that sync tools run in."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from engine.threads import Threads

__all__ = ()

pytestmark = pytest.mark.anyio


async def test_whoever_is_cancelled_as_its_thread_begins_keeps_no_place() -> None:
    """At whichever of its awaits that is."""
    threads = Threads(2)
    for microseconds in range(300):
        with anyio.move_on_after(microseconds * 1e-6):
            await threads.job(lambda: None).run()
    with anyio.fail_after(10):
        assert [await threads.job(lambda: 7).run() for _ in range(3)] == [7] * 3
        while "0 of 2" not in repr(threads):
            await anyio.lowlevel.checkpoint()
