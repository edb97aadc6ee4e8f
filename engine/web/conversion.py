"""Reading in a process of its own: bounded in time and memory, without the environment's secrets."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from subprocess import PIPE
from typing import Final

import anyio
import msgspec

from engine.services import Services
from engine.web.converter import Answer
from engine.web.document import Unreadable, WebDocument

__all__ = ("SECONDS", "Conversion", "environment", "has_module")

SECONDS: Final = 25.0
"""Seconds on the clock for one page, waiting for others included."""

_AT_ONCE: Final = 4
_KEPT: Final = ("LD_LIBRARY_PATH", "SYSTEMROOT", "TMPDIR", "TEMP", "TMP")


def has_module(name: str) -> bool:
    """Tell whether a library is installed."""
    return find_spec(name) is not None


class Conversion:
    """Starts the processes of one engine, a few at a time. A cancelled or late one is killed."""

    def __init__(self, services: Services) -> None:  # noqa: ARG002 - as everything is made that is shared
        self._turns = anyio.CapacityLimiter(_AT_ONCE)

    async def document(self, kind: str, body: bytes, url: str, seconds: float = SECONDS) -> WebDocument:
        """Return a body as it was read.

        :param kind: one of ``engine.web.converter.KINDS``
        :raises Unreadable: if it cannot be read, or takes too much time or memory
        """
        command = [sys.executable, "-m", "engine.web.converter", kind, url]
        try:
            with anyio.fail_after(seconds):
                async with self._turns:
                    done = await anyio.run_process(
                        command, input=body, stdout=PIPE, stderr=PIPE, check=False, env=environment()
                    )
        except TimeoutError:
            raise Unreadable(f"it takes longer than {seconds:g} s to read") from None
        if done.returncode != 0:
            raise Unreadable("it takes too much time or memory to read, or is broken")
        answer = msgspec.json.decode(done.stdout, type=Answer)
        if answer.document is None:
            raise Unreadable(answer.problem or "it cannot be read")
        return answer.document


def environment() -> dict[str, str]:
    """Return the variables that a reading process has: what finds the same modules, and nothing else."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    path = os.pathsep.join(place or os.getcwd() for place in sys.path)
    return {**kept, "PYTHONPATH": path, "PYTHONSAFEPATH": "1", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUTF8": "1"}
