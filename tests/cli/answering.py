"""The command on a terminal of its own, with somebody who answers."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.cli.command import Ended

__all__ = ("END", "typed")

END = "\x04"
"""Typed instead of a line: the end of the input."""

_PATIENCE = 60.0
_ASKING = b": "


def typed(arguments: Sequence[str], lines: Sequence[str], cwd: Path, env: Mapping[str, str]) -> Ended:
    """Run the command as a program, and answer each of its questions; ``err`` is what the terminal shows."""
    ours, theirs = pty.openpty()
    program = [sys.executable, "-P", "-m", "engine.cli", *arguments]
    with subprocess.Popen(
        program, cwd=cwd, env=dict(env), stdin=theirs, stderr=theirs, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        os.close(theirs)
        try:
            screen = _answered(ours, lines)
            assert process.stdout is not None
            out = process.stdout.read().decode()
            while more := _read(ours):
                screen += more
            code = process.wait(timeout=_PATIENCE)
        finally:
            process.kill()
            os.close(ours)
    return Ended(code, out, screen.decode())


def _answered(terminal: int, lines: Sequence[str]) -> bytes:
    screen, asked = b"", 0
    for line in lines:
        while screen.count(_ASKING) <= asked:
            more = _read(terminal)
            assert more, f"nothing was asked: {screen!r}"
            screen += more
        asked = screen.count(_ASKING)
        os.write(terminal, line.encode() + (b"" if line == END else b"\n"))
    return screen


def _read(terminal: int) -> bytes:
    """Return what comes; nothing: the program has ended, or says no more."""
    ready, _, _ = select.select([terminal], [], [], _PATIENCE)
    try:
        return os.read(terminal, 4096) if ready else b""
    except OSError:
        return b""
