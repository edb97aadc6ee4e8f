"""Portions of the work over a whole log, and what is found in them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import Any, Literal, Protocol, TypeAlias

import msgspec
from msgspec.structs import replace

from projections.report import MOST, Problem

__all__ = ("Hands", "LostError", "Part", "Portion", "Work", "portions")

Work: TypeAlias = Literal["seals", "streams", "numbers", "rows"]

_SIZE = 10_000
"""Positions in a portion: a quarter of a second, about."""


class Portion(msgspec.Struct, frozen=True):
    """Some work over the numbers ``after`` < number <= ``upto``: seals by the positions where they end, streams beside
    their rows, or streams folded to rows, by the streams' numbers; ``tool_call_streams`` has one portion."""

    work: Work
    after: int
    upto: int


class Part(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was found in a portion up to ``upto``; the last part of a portion ends where the portion does.

    :ivar more: problems beyond those that are kept
    :ivar begun: entries of ``tool_call_streams`` that begin a stream
    :ivar rows: rows as the driver takes them
    :ivar kept: streams of which only the row that is there knows everything
    """

    upto: int
    events: int = 0
    streams: int = 0
    unknown: int = 0
    problems: tuple[Problem, ...] = ()
    more: int = 0
    begun: int = 0
    rows: Sequence[tuple[Any, ...]] = ()
    kept: Sequence[int] = ()

    def joined(self, later: Part) -> Part:
        """Return this with the part that comes after it; rows are left out."""
        problems = self.problems + later.problems
        return replace(
            later,
            events=self.events + later.events,
            streams=self.streams + later.streams,
            unknown=self.unknown + later.unknown,
            problems=problems[:MOST],
            more=self.more + later.more + len(problems[MOST:]),
            begun=self.begun + later.begun,
        )


class LostError(Exception):
    """Whoever did a portion cannot go on with it, through no fault of the log."""


class Hands(Protocol):
    """Somebody who does portions, one after another."""

    def parts(self, portion: Portion) -> AsyncGenerator[Part, None]:
        """Yield what is found, part by part, in order.

        :raises LostError: if somebody else must do the rest
        :raises LogUnavailable: if the database cannot be read
        """
        ...


def portions(work: Work, after: int, upto: int, end: int | None = None) -> Iterator[Portion]:
    """Yield the portions between two numbers; the last one ends at ``end``, if that is given."""
    for first in range(after, upto, _SIZE):
        last = first + _SIZE
        yield Portion(work, first, last if last < upto else end or upto)
