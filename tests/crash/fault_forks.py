"""The test's side of the fork server."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec

from tests.crash.fault_job import Job, Said
from tests.shape import ROOT

__all__ = ("Forks", "fork_server")


class Forks:
    """Runs jobs, each in a process of its own."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def run(self, jobs: Sequence[Job]) -> list[Said]:
        """Run jobs, a few at once, and return what they say in their order."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(msgspec.json.encode(jobs) + b"\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the fork server has ended"
        return msgspec.json.decode(answer, type=list[Said])


@contextmanager
def fork_server() -> Iterator[Forks]:
    """Start the server, and end it."""
    command = [sys.executable, "-m", "tests.crash.fault_server"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield Forks(process)
        assert process.stdin is not None
        # It ends with its input.
        process.stdin.close()
