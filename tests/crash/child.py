"""A process of a test's own that waits for its sign to begin, says what it does line by line, and can be killed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from typing import IO

from tests.shape import ROOT

__all__ = ("Child",)


class Child:
    """A module that runs as a program; ``lines`` grows with what it says once it has begun."""

    def __init__(self, module: str, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **(environment or {})},
        )
        self.lines: list[str] = []

    @property
    def _out(self) -> IO[bytes]:
        assert self.process.stdout is not None
        return self.process.stdout

    def get_ready(self) -> list[str]:
        """Wait until it is ready, and return what it says of itself."""
        ready, *about = self._out.readline().decode().split()
        assert ready == "ready"
        return about

    def begin(self) -> None:
        """Let it go on."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def listen(self, lines: int | None = None) -> None:
        """Read until it has said so many lines, or all there will be; half a line does not count."""
        while lines is None or len(self.lines) < lines:
            line = self._out.readline()
            if not line.endswith(b"\n"):
                return
            self.lines.append(line.decode().strip())

    def kill(self) -> None:
        """Kill it as a power cut would, and read what it had said."""
        self.process.kill()
        self.listen()
        self.process.wait()

    def close(self) -> None:
        """End it, if it has not ended, and let go of its pipes."""
        if self.process.poll() is None:
            self.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()
