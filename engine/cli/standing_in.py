"""The stand-ins that ship with the tests: servers of this machine in the place of those that tools call."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any, Final

import anyio
import msgspec
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from events.errors import Refused

__all__ = ("HERE", "Standing", "Trial", "has_stand_ins", "standing_in")

HERE: Final = frozenset({"127.0.0.1"})
"""What a stand-in's tool may reach."""

_ROOT: Final = Path(__file__).parent.parent.parent
_SECONDS: Final = 60.0
_LONGEST: Final = 1024 * 1024
_NONE: Final = 3
"""The exit code that says that a tool has none."""


class Trial(msgspec.Struct, frozen=True):
    """A call to try."""

    action: str
    arguments: dict[str, Any]


class Standing(msgspec.Struct, frozen=True):
    """What a stand-in says of itself.

    :ivar config: of a row that calls it, secrets included
    """

    config: dict[str, Any]
    trials: tuple[Trial, ...]


def has_stand_ins() -> bool:
    """Tell whether the tests are here, as they are beside the source."""
    return (_ROOT / "tests/stand_ins/__main__.py").is_file()


@asynccontextmanager
async def standing_in(name: str) -> AsyncIterator[Standing | None]:
    """Start a tool's stand-in, and end it; None: it has none.

    :raises Refused: if it does not start
    """
    command = [sys.executable, "-m", "tests.stand_ins", name]
    async with await anyio.open_process(command, cwd=_ROOT, stdin=PIPE, stdout=PIPE, stderr=DEVNULL) as process:
        assert process.stdout is not None
        # It ends by itself when its standard input does, as this block's end brings about.
        yield await _told(name, process, BufferedByteReceiveStream(process.stdout))


async def _told(name: str, process: Process, said: BufferedByteReceiveStream) -> Standing | None:
    try:
        with anyio.fail_after(_SECONDS):
            return msgspec.json.decode(await said.receive_until(b"\n", _LONGEST), type=Standing)
    except anyio.IncompleteRead:
        if await process.wait() == _NONE:
            return None
        raise Refused(f"the stand-in of {name!r} does not start; see `python -m tests.stand_ins {name}`") from None
    except TimeoutError:
        process.kill()
        raise Refused(f"the stand-in of {name!r} has not started within {_SECONDS:g} s") from None
