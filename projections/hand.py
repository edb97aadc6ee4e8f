"""Portions of the work, done in this process."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from msgspec.structs import replace

from events.log import EventLog
from events.records import Pager
from events.seal import check_seals
from projections.columns import bound_values
from projections.comparison import Comparison
from projections.fold import TextCodec
from projections.numbers import check_numbers
from projections.portions import Part, Portion
from projections.report import Problem
from projections.streams import StreamFold, fold_streams

__all__ = ("Hand", "rows_of")


class Hand:
    """Does portions of the work, one after another."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._codec = TextCodec(log.codec)
        self._comparison = Comparison(log.store, self._codec)
        self._pager = Pager()

    def parts(self, portion: Portion) -> AsyncGenerator[Part, None]:
        """See ``Hands.parts``."""
        match portion.work:
            case "seals":
                return self._seals(portion)
            case "streams":
                return self._comparison.parts(portion.after, portion.upto)
            case "numbers":
                return self._numbers(portion)
            case "rows":
                return self._rows(portion)

    async def _seals(self, portion: Portion) -> AsyncGenerator[Part, None]:
        problems: tuple[Problem, ...] = ()
        async with aclosing(check_seals(self._log, portion.after, portion.upto)) as checked:
            async for entry in checked:
                last = entry.seal.last
                problems = () if entry.problem is None else (_unsealed(entry.problem, last),)
                if last < portion.upto:
                    yield Part(upto=last, problems=problems)
                    problems = ()
        yield Part(upto=portion.upto, problems=problems)

    async def _numbers(self, portion: Portion) -> AsyncGenerator[Part, None]:
        numbers = await check_numbers(self._log.store, portion.upto)
        yield Part(upto=portion.upto, problems=numbers.problems, begun=numbers.begun)

    async def _rows(self, portion: Portion) -> AsyncGenerator[Part, None]:
        part = None
        pages = fold_streams(self._log.store, self._codec, portion.after, portion.upto, self._pager)
        async with aclosing(pages):
            async for page in pages:
                if page:
                    if part is not None:
                        yield part
                    part = rows_of(page, self._log.store.dialect)
        yield Part(upto=portion.upto) if part is None else replace(part, upto=portion.upto)


def rows_of(folds: Sequence[StreamFold], dialect: str) -> Part:
    """Return some folded streams (at least one) as rows."""
    return Part(
        upto=folds[-1].stream,
        events=sum([fold.version for fold in folds]),
        streams=len(folds),
        unknown=sum([fold.unknown for fold in folds]),
        problems=tuple([problem for fold in folds for problem in fold.problems]),
        rows=[bound_values(fold.row, dialect) for fold in folds if fold.whole and fold.row is not None],
        kept=[fold.stream for fold in folds if not fold.whole],
    )


def _unsealed(message: str, position: int) -> Problem:
    return Problem(kind="seal", message=message, position=position)
