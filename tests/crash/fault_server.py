"""A process that has imported everything and forks a child for each job: a job costs milliseconds, not a second.

``python -m tests.crash.fault_server`` reads a line with a list of jobs, runs them, a few at once, and writes a line
with what each of them said. It has no threads and no event loop of its own, so that a fork is sound.
"""

from __future__ import annotations

import faulthandler
import gc
import importlib
import os
import signal
import sys
import tempfile
import threading
import traceback
from typing import IO

import msgspec

from tests.crash.fault_child import work as run_here
from tests.crash.fault_job import Job, Said
from tests.crash.fault_paths import PATHS

__all__ = ()

AT_ONCE = (os.cpu_count() or 1) + 1
"""Children at one time: each waits now and then for its database."""
PATIENCE = 60.0
"""Seconds after which a child that hangs says where, and ends."""

LATER = (
    "anyio._backends._asyncio",
    "anyio._backends._trio",
    "asyncpg",
    "engine.answers",
    "engine.confirmation",
    "engine.decisions",
    "engine.execution",
    "engine.parallel",
    "engine.resuming",
    "engine.starting",
    "engine.submission",
    "engine.tools.read_webpage",
    "events.postgres",
    "events.sqlite",
    "jsonschema_rs",
    "projections.comparison",
    "sqlalchemy.dialects.postgresql.asyncpg",
    "sqlalchemy.ext.asyncio",
    "uvloop",
)
"""What a child would import only when it needs it."""


def born(job: Job, answer: IO[bytes]) -> int:
    """Fork a child for a job and return its process id; what it says goes into ``answer``."""
    child = os.fork()
    if child:
        return child
    try:
        faulthandler.dump_traceback_later(PATIENCE, exit=True, file=answer)
        said = run_here(job)
    except BaseException:
        said = Said(problems=(traceback.format_exc(limit=-6),))
    answer.write(b"\n" + msgspec.json.encode(said))
    answer.flush()
    os._exit(0)


def said_by(status: int, answer: IO[bytes]) -> Said:
    """Return what came of a child that has ended."""
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return Said(killed=True, reached=True)
    answer.seek(0)
    text = answer.read()
    if os.waitstatus_to_exitcode(status) != 0:
        return Said(problems=(f"ended with {os.waitstatus_to_exitcode(status)}: {text.decode(errors='replace')}",))
    return msgspec.json.decode(text.rpartition(b"\n")[2], type=Said)


def run(jobs: list[Job]) -> list[Said]:
    """Run jobs, a few at once, and return what they say in their order."""
    waiting = list(enumerate(jobs))[::-1]
    running: dict[int, tuple[int, IO[bytes]]] = {}
    said: dict[int, Said] = {}
    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            place, job = waiting.pop()
            fresh = tempfile.TemporaryFile()  # noqa: SIM115  (open until its child has ended)
            running[born(job, fresh)] = (place, fresh)
        child, status = os.wait()
        place, answer = running.pop(child)
        with answer:
            said[place] = said_by(status, answer)
    return [said[place] for place in range(len(jobs))]


def main() -> None:
    for module in LATER:
        importlib.import_module(module)
    with tempfile.TemporaryDirectory() as folder:
        # What is made once a process is made here once: children inherit it.
        warm = run_here(Job(task="walk", path=PATHS[0].name, backend="asyncio", url="sqlite://", folder=folder))
        assert not warm.problems, warm.problems
    for thread in set(threading.enumerate()) - {threading.main_thread()}:
        thread.join(PATIENCE)
    assert threading.active_count() == 1
    gc.collect()
    gc.freeze()
    # A collection would write to every page that a child shares with us.
    gc.disable()
    for line in sys.stdin.buffer:
        answers = run(msgspec.json.decode(line, type=list[Job]))
        sys.stdout.buffer.write(msgspec.json.encode(answers) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
