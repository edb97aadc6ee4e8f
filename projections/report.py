"""What ``verify`` and ``rebuild`` report."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

import msgspec

__all__ = ("MOST", "Problem", "ProblemKind", "Report", "Resume")

ProblemKind: TypeAlias = Literal["row", "stream", "event", "transition", "payload", "seal"]

MOST = 1000
"""Problems that are kept; the rest is counted."""


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is not as it must be; ``str`` gives it as one line.

    :ivar kind: what is wrong: a state row, a stream's numbering, an event's text, a step that the lifecycle forbids, a
        long result, a seal
    :ivar key: the call, with ``user_id`` its tenant; None for a seal
    :ivar position: where in the log, if one place is to blame
    """

    kind: ProblemKind
    message: str
    key: str | None = None
    user_id: str | None = None
    position: int | None = None

    def __str__(self) -> str:
        of = "" if self.key is None else f" of call {self.key!r}"
        tenant = "" if self.user_id is None else f" (user {self.user_id!r})"
        place = "" if self.position is None else f" at position {self.position}"
        return f"{self.kind}{of}{tenant}{place}: {self.message}"


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a run over the whole log.

    :ivar ok: nothing is wrong
    :ivar problems: what is, at most a thousand; ``more`` counts the rest
    :ivar events: events folded; ``streams``: calls compared or rebuilt
    :ivar unknown: events of a kind or version this release does not know; their calls are checked only in part
    :ivar head: the position up to which the log was looked at
    :ivar sealed: the last sealed position, with ``seal``, its digest: kept elsewhere, it anchors the log
    """

    ok: bool
    problems: tuple[Problem, ...] = ()
    more: int = 0
    events: int = 0
    streams: int = 0
    unknown: int = 0
    head: int = 0
    sealed: int = 0
    seal: str | None = None

    def __repr__(self) -> str:
        found = "ok" if self.ok else f"{len(self.problems) + self.more} problems"
        return f"<Report {found}: {self.events} events in {self.streams} streams up to {self.head}>"


class Resume(msgspec.Struct, frozen=True, kw_only=True):
    """How far a ``verify`` has come: keep it (it is a Struct, so it has a JSON form) and begin there another time.

    :ivar head: the position up to which that run looks
    :ivar sealed: seals are checked up to this position; None: all are
    :ivar stream: streams are compared up to this one
    """

    head: int
    sealed: int | None = 0
    stream: int = 0
    events: int = 0
    streams: int = 0
    unknown: int = 0
    problems: tuple[Problem, ...] = ()
    more: int = 0

    def with_problems(self, found: Iterable[Problem], more: int = 0) -> Resume:
        """Return this with problems added, as far as there is room for them, and ``more`` counted."""
        added = tuple(found)
        if not added:
            return self
        room = max(0, MOST - len(self.problems))
        kept = (*self.problems, *added[:room])
        return msgspec.structs.replace(self, problems=kept, more=self.more + more + len(added[room:]))
