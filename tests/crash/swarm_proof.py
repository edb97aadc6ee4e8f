"""What must hold after a swarm: of its log, its table, what its tools did, and what its processes were given."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import msgspec

from engine import Engine
from events import Denied, Executed, Failed, LateOutcome, Proposed, Recorded, Resumed, ToolEvent
from events.keys import tenant_column
from projections import AttemptRow, verify
from projections.listing import Wanted, list_attempts
from tests.crash.swarm_process import members_in, said_in
from tests.crash.swarm_tools import IDEMPOTENT, Effect, effects_in
from tests.logs import recorded_events

__all__ = ("Aftermath", "aftermath", "unanswered", "wrongs")


class Aftermath(msgspec.Struct, frozen=True):
    """What a swarm left behind.

    :ivar streams: of every call, by its key after its tenant
    :ivar killed: the processes that were killed
    :ivar workers: the process of every engine
    """

    events: list[Recorded[ToolEvent]]
    streams: dict[str, list[ToolEvent]]
    rows: dict[str, AttemptRow]
    effects: list[Effect]
    killed: set[str]
    workers: dict[str, str]

    def kinds(self) -> Counter[str]:
        """Return how often what came about, for people and for the proof that everything did."""
        counted = Counter(type(entry.event).__name__ for entry in self.events)
        for row in self.rows.values():
            counted[f"row {row.status}"] += 1
        for entry in self.events:
            match entry.event:
                case Denied(reason=what) | Failed(kind=what):
                    counted[what] += 1
                case Resumed(takeover=True):
                    counted["takeover"] += 1
        counted["ordinal"] = sum("#" in key for key in self.streams)
        counted["run again"] = len(self.effects) - len({(each.key, each.asked) for each in self.effects})
        return counted


async def aftermath(engine: Engine, folder: Path, killed: set[str]) -> Aftermath:
    """Read what a swarm left behind."""
    events = await recorded_events(engine.log)
    streams: dict[str, list[ToolEvent]] = defaultdict(list)
    for entry in events:
        streams[_name(entry.user_id, entry.key)].append(entry.event)
    rows = [row async for row in list_attempts(engine.log, Wanted(user_id=None, every_tenant=True))]
    return Aftermath(
        events=events,
        streams=dict(streams),
        rows={_name(row.user_id, row.key): row for row in rows},
        effects=list(effects_in(folder)),
        killed=killed,
        workers={member.worker: member.process for member in members_in(folder)},
    )


async def wrongs(engine: Engine, folder: Path, left: Aftermath) -> list[str]:
    """Return everything that should not be."""
    report = await verify(engine.log)
    return [
        *(f"verify: {problem}" for problem in report.problems),
        *_lost(folder, left),
        *_skipped(folder, left),
        *_repeated(left),
        *_told_wrongly(left),
    ]


async def unanswered(engine: Engine, left: Aftermath) -> list[str]:
    """Return every turn whose calls do not each have one answer, or of which one says more than the log."""
    turns: dict[tuple[str | None, str], list[AttemptRow]] = defaultdict(list)
    for row in left.rows.values():
        turn = row.message_id or row.run_id
        if turn is not None and not row.duplicate:
            turns[row.user_id, turn].append(row)
    wrong = []
    for (user_id, turn), rows in list(turns.items())[:200]:
        told = await engine.tool_results(turn, user_id=user_id)
        if len(told) != len(rows) or len({answer["tool_call_id"] for answer in told}) != len(rows):
            wrong.append(f"turn {turn!r} of {user_id!r} has {len(rows)} calls, and the answers {told}")
        for row, answer in zip(sorted(rows, key=lambda row: row.stream), told, strict=False):
            if row.status not in ("executed", "confirmed") and answer["content"].startswith(('{"done"', "done ")):
                wrong.append(f"{row} is told as {answer}")
    return wrong


def _name(user_id: str | None, key: str) -> str:
    return f"{tenant_column(user_id)} {key}"


def _lost(folder: Path, left: Aftermath) -> Iterable[str]:
    """Yield what a process was given and the log does not have, or not so, or not once."""
    counted = Counter(entry.event.id for entry in left.events)
    yield from (f"{name} is there {count} times" for name, count in counted.items() if count != 1)
    recorded = {entry.event.id: entry for entry in left.events}
    for said in said_in(folder):
        entry = recorded.get(said.id)
        if entry is None:
            yield f"{said} is not in the log"
        elif (entry.position, type(entry.event).__name__, _name(entry.user_id, entry.key)) != (
            said.position,
            said.kind,
            said.key,
        ):
            yield f"{said} is another event in the log: {entry}"


def _skipped(folder: Path, left: Aftermath) -> Iterable[str]:
    """Yield whether the reader missed an event, or was given one twice or too late."""
    followed = (folder / "followed").read_text().splitlines()
    recorded = [f"{entry.position} {entry.event.id}" for entry in left.events]
    if followed != recorded:
        missed, extra = Counter(recorded) - Counter(followed), Counter(followed) - Counter(recorded)
        yield f"the reader saw other events, or in another order; missed {missed}, too often {extra}"


def _repeated(left: Aftermath) -> Iterable[str]:
    """Yield every call whose tool ran more often than it may."""
    runs: dict[tuple[str, bool], list[Effect]] = defaultdict(list)
    for effect in left.effects:
        runs[effect.key, effect.asked].append(effect)
    for (key, _asked), effects in runs.items():
        digests = {effect.digest for effect in effects}
        if key not in left.streams:
            yield f"{key} ran and was never proposed: {effects}"
        elif len(digests) > 1:
            yield f"{key} ran with different arguments: {effects}"
        elif effects[0].tool not in IDEMPOTENT:
            yield from (f"{key} ran {len(effects)} times: {effects}" for _ in effects[1:2])
        elif len(effects) > 1:
            yield from _unexplained(left, key, effects)


def _unexplained(left: Aftermath, key: str, effects: list[Effect]) -> Iterable[str]:
    """Yield why an idempotent call ran more often than the log explains."""
    stream = left.streams[key]
    claims = [event for event in stream if isinstance(event, Resumed)]
    ends = [event for event in stream if isinstance(event, Executed | Failed | LateOutcome)]
    by_process = Counter(effect.process for effect in effects)
    if claims and len(effects) > len(claims):
        yield f"{key} ran {len(effects)} times, and was claimed {len(claims)} times"
    if any(count > 1 for count in by_process.values()):
        yield f"{key} ran twice in one process: {by_process}, {_told(stream)}"
    # Whoever was not killed has said what came of it.
    survivors = [process for process in by_process if process not in left.killed]
    if len(survivors) > len(ends):
        yield f"{key} was run by {survivors}, and has {len(ends)} outcomes"
    opening = stream[0]
    assert isinstance(opening, Proposed)
    late = any(isinstance(event, LateOutcome) for event in stream)
    if not late and not {left.workers[name] for name in _workers(stream)} & left.killed:
        yield f"{key} ran {len(effects)} times, and nobody died of it"


def _told(stream: list[ToolEvent]) -> str:
    """Return a stream for people: what came when."""
    return ", ".join(f"{type(event).__name__}{' late' if event.late else ''} {event.id}" for event in stream)


def _workers(stream: list[ToolEvent]) -> set[str]:
    return {event.worker for event in stream if isinstance(event, Proposed | Resumed)}


def _told_wrongly(left: Aftermath) -> Iterable[str]:
    """Yield every call that ran and looks as if it had not, or the other way round."""
    ran = {effect.key for effect in left.effects}
    done = {effect.key for effect in left.effects if not effect.asked}
    for key, row in left.rows.items():
        last = next(event for event in reversed(left.streams[key]) if isinstance(event, _OUTCOMES))
        if key in ran and not _may_have_run(last):
            yield f"{key} ran, and is told as {last}"
        if row.status in ("executed", "confirmed") and row.tool_name != "client" and key not in done:
            yield f"{key} did not run, and is told as {last}"
        if row.duplicate != isinstance(last, Denied) and row.duplicate:
            yield f"{key} is a repetition, and is told as {last}"


_OUTCOMES = (Proposed, Denied, Executed, Failed)
_NEVER_RAN = ("invalid_call", "unknown_tool", "invalid_arguments", "load")


def _may_have_run(last: ToolEvent) -> bool:
    match last:
        case Denied():
            return False
        case Failed(kind=kind, message=message):
            return kind not in _NEVER_RAN and "was not run" not in message
        case _:
            return True
