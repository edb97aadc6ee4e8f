"""One path of the fault matrix, on one store and one loop: counted, struck at every await, carried on, compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from tests.crash.fault_awaits import FAULTS, Fault, faults_of
from tests.crash.fault_forks import Forks
from tests.crash.fault_job import Job, Said
from tests.crash.fault_paths import Path, path_named

__all__ = ("Points", "struck_everywhere", "table_of")


class Points(msgspec.Struct, frozen=True, kw_only=True):
    """How many points there were: awaits counted in an unbroken run, and those at which each fault came."""

    path: str
    store: str
    loop: str
    counted: int
    run: dict[Fault, int]


def struck_everywhere(forks: Forks, job: Job, store: str) -> Points:
    """Walk a job's path once unbroken, then once per await and fault; then carry every turn on.

    :raises AssertionError: if a fault did not come where it was to come, or left something that must not be
    """
    path = path_named(job.path)
    _stage(forks, path, job, [job.turn])
    (unbroken,) = forks.run([job])
    counted = unbroken.awaits
    assert not unbroken.problems, "\n".join(unbroken.problems)
    # One beyond the last: there the path ends before the fault comes.
    walks = [replace(job, fault=fault, at=at) for fault in faults_of(job.backend) for at in range(1, counted + 2)]
    _stage(forks, path, job, [walk.turn for walk in walks])
    said = forks.run(walks)
    problems = [line for walk, each in zip(walks, said, strict=True) for line in _amiss(walk, each, counted)]
    problems += _carried_on(forks, replace(job, turns=(job.turn, *(walk.turn for walk in walks))))
    assert not problems, "\n".join((f"{len(problems)} problems, of which the first are", *problems[:20]))
    reached = [walk.fault for walk, each in zip(walks, said, strict=True) if each.reached]
    run = {fault: reached.count(fault) for fault in faults_of(job.backend)}
    assert set(run.values()) == {counted}
    return Points(path=path.name, store=store, loop=job.backend, counted=counted, run=run)


def _stage(forks: Forks, path: Path, job: Job, turns: Sequence[str]) -> None:
    if path.staged is not None:
        (said,) = forks.run([replace(job, task="stage", turns=tuple(turns))])
        assert said.killed, "\n".join(said.problems)


def _amiss(walk: Job, said: Said, counted: int) -> Iterator[str]:
    """Yield what is wrong with one struck walk, as the process itself sees it."""
    yield from (f"{walk.turn}: {problem}" for problem in said.problems)
    if said.problems:
        return
    if said.reached != (walk.at <= counted):
        yield f"{walk.turn}: {said.awaits} awaits, while the unbroken run had {counted}"
    if said.killed != (said.reached and walk.fault.startswith("kill")):
        yield f"{walk.turn}: {'killed' if said.killed else 'not killed'}"
    if not said.reached and said.awaits != counted:
        yield f"{walk.turn}: not struck, it had {said.awaits} awaits instead of {counted}"


def _carried_on(forks: Forks, job: Job) -> list[str]:
    """Let the workers be dead, look, and carry on: half of the turns before the reconciler comes, half after it."""
    first, second = job.turns[::2], job.turns[1::2]
    steps = (
        [replace(job, task="look")],
        _shared(replace(job, task="carry on"), first),
        [replace(job, task="reconcile", turns=second)],
        _shared(replace(job, task="carry on"), second),
        [replace(job, task="compare")],
    )
    return [problem for jobs in steps for said in forks.run(jobs) for problem in said.problems]


def _shared(job: Job, turns: Sequence[str]) -> list[Job]:
    return [replace(job, turns=tuple(turns[part::2])) for part in range(2)]


def table_of(rows: Sequence[Points]) -> Iterator[str]:
    """Yield the lines of a table of points, and their sum."""
    yield f"{'path':28} {'store':9} {'loop':8} {'awaits':>6} " + " ".join(f"{fault:>13}" for fault in FAULTS)
    for row in rows:
        cells = " ".join(f"{row.run.get(fault, '-'):>13}" for fault in FAULTS)
        yield f"{row.path:28} {row.store:9} {row.loop:8} {row.counted:6} {cells}"
    yield f"points run = points counted, in all: {sum(sum(row.run.values()) for row in rows)}"
