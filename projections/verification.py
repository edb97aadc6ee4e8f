"""The work of ``verify``: the hash chain, then every stream beside its row, then the streams' own table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import aclosing

from msgspec.structs import replace
from sqlalchemy import select

from events.log import EventLog
from events.schema import events
from events.seal import NO_END, last_seal
from projections.columns import raw_columns
from projections.comparison import without_stream
from projections.numbers import misnumbered
from projections.portions import Part, Portion, portions
from projections.report import Report, Resume
from projections.schema import attempts
from projections.second import wants_second
from projections.sharing import share

__all__ = ("Verification",)


class Verification:
    """One run over the log; ``state`` is how far it has come."""

    def __init__(
        self, log: EventLog, state: Resume, progress: Callable[[int, int], None], checkpoint: Callable[[Resume], None]
    ) -> None:
        self.log = log
        self.store = log.store
        self.state = state
        self._progress = progress
        self._checkpoint = checkpoint
        self._begun = 0

    async def run(self, processes: int | None) -> Report:
        """Do what is left of it and return what was found."""
        left = self.state.head - self.state.stream
        second = wants_second(self.log, left, processes)
        await share(self.log, self._portions(), self._take, self.state.head if second else None)
        # Each entry that begins a stream begins one of its own: as many as there are streams, and none lacks its entry.
        if self._begun != self.state.streams or self.state.problems:
            async with aclosing(misnumbered(self.store)) as pages:
                async for problems in pages:
                    self.state = self.state.with_problems(problems)
        await self._check_rows_beyond()
        return await self._report()

    def _portions(self) -> Iterator[Portion]:
        head = self.state.head
        if self.state.sealed is not None:
            # To the end of the chain, which may lie beyond the head of a run that is resumed.
            yield from portions("seals", self.state.sealed, max(head, self.state.sealed + 1), NO_END)
        yield from portions("streams", self.state.stream, head)
        yield Portion("numbers", -1, head)

    def _take(self, portion: Portion, part: Part) -> None:
        state = self.state.with_problems(part.problems, part.more)
        match portion.work:
            case "seals":
                self._advance(replace(state, sealed=None if part.upto == NO_END else part.upto))
            case "streams":
                streams = state.streams + part.streams
                counted = replace(state, events=state.events + part.events, streams=streams)
                self._advance(replace(counted, stream=part.upto, unknown=state.unknown + part.unknown))
            case _:
                self.state = state
                self._begun = part.begun

    def _advance(self, state: Resume) -> None:
        self.state = state
        sealed = state.head if state.sealed is None else min(state.sealed, state.head)
        self._progress(sealed + state.stream, 2 * state.head)
        self._checkpoint(state)

    async def _check_rows_beyond(self) -> None:
        begun = select(events.c.position).where(events.c.stream == attempts.c.stream).exists()
        statement = select(*raw_columns(self.store.dialect)).where(attempts.c.stream > self.state.head, ~begun)
        rows = await self.store.read(statement.limit(1000))
        self.state = self.state.with_problems([without_stream(row) for row in rows])

    async def _report(self) -> Report:
        state = self.state
        last = await last_seal(self.store)
        self._advance(replace(state, stream=state.head))
        return Report(
            ok=not state.problems,
            problems=state.problems,
            more=state.more,
            events=state.events,
            streams=state.streams,
            unknown=state.unknown,
            head=state.head,
            sealed=last.last if last else 0,
            seal=last.digest if last else None,
        )
