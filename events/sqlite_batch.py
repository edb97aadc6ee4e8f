"""What one SQLite transaction has to write: rows in the form in which the statements take them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import compress
from typing import Any

from events.schema import utc_text
from events.store import Appended, Guard, InlineProjection, Payload, StreamAppend

__all__ = ("GivenColumns", "RowForms", "SqliteBatch")

_FLAGS = ("late", "headless", "idempotent")
_OF_GATE = ("pause_type", "expires_at")


class GivenColumns:
    """Which of a projection's columns an append gives, and their values as SQLite takes them.

    Binding a None or a bool costs several times what a text or an int does, so what is not given is left out.

    :param names: the columns, in the order of the values
    :param opening: the values make a row; otherwise they change one
    """

    def __init__(self, names: Sequence[str], *, opening: bool) -> None:
        self._names = tuple(names)
        self._flags = [index for index, name in enumerate(names) if name in _FLAGS]
        self._late = self._names.index("late")
        self._expiry = self._names.index("expires_at")
        self._gate = self._names.index("gate")
        self._of_gate = frozenset(map(self._names.index, _OF_GATE))
        self._opening = opening

    def pick(self, given: Sequence[Any]) -> tuple[tuple[str, ...], list[Any]]:
        """Return the columns to write and their values, in the same order."""
        values = list(given)
        for index in self._flags:
            if values[index] is not None:
                values[index] = int(values[index])
        if values[self._expiry] is not None:
            values[self._expiry] = utc_text(values[self._expiry])
        if self._opening:
            values[self._late] = values[self._late] or 0
        picks = [value is not None for value in values]
        if not self._opening and picks[self._gate]:
            # A new gate sets what goes with it, to nothing too.
            picks = [pick or index in self._of_gate for index, pick in enumerate(picks)]
        return tuple(compress(self._names, picks)), [*compress(values, picks)]


class RowForms:
    """The two forms of an inline projection's rows."""

    def __init__(self, projection: InlineProjection) -> None:
        self.opening = GivenColumns(projection.insert_columns, opening=True)
        self.change = GivenColumns(projection.update_columns, opening=False)


class SqliteBatch:
    """Rows to write, grouped by statement. Pure: it knows no connection.

    :ivar first: the last position before this batch
    :ivar position: the last position given out
    """

    def __init__(self, forms: RowForms, position: int, moment: datetime | None = None) -> None:
        self.first = self.position = position
        self.moment = moment or datetime.now(UTC)
        self.text = utc_text(self.moment)
        self.streams: list[tuple[str, str, int]] = []
        self.rows: dict[tuple[str, ...], list[list[Any]]] = defaultdict(list)
        self.changes: dict[tuple[tuple[str, ...], Guard], list[list[Any]]] = defaultdict(list)
        self.payloads: list[tuple[int, str, Payload]] = []
        self.events: list[tuple[Any, ...]] = []
        self._forms = forms

    def following(self) -> SqliteBatch:
        """Return an empty batch that goes on where this one ends, at the same moment."""
        return SqliteBatch(self._forms, self.position, self.moment)

    def begin(self, append: StreamAppend) -> Appended:
        """Take in an append that begins a stream, whose number is its first event's position."""
        stream = self.position + 1
        appended = self._add(append, stream)
        columns, values = self._forms.opening.pick(append.change.values)
        self.streams.append((append.tenant, append.key, stream))
        self.rows[columns].append([stream, append.tenant, append.key, len(append.events), self.position, *values])
        return appended

    def change(self, append: StreamAppend, stream: int) -> Appended:
        """Take in an append to a stream that is there; its guard decides when the rows are written."""
        appended = self._add(append, stream)
        guard = append.change.guard
        assert guard is not None
        columns, values = self._forms.change.pick(append.change.values)
        before = append.expected_version
        row = [stream, append.tenant, before, before + len(append.events), self.position, *values]
        self.changes[columns, guard].append(row)
        return appended

    def _add(self, append: StreamAppend, stream: int) -> Appended:
        first = self.position + 1
        tenant, key, version = append.tenant, append.key, append.expected_version
        for event in append.events:
            self.position += 1
            version += 1
            self.events.append(
                (self.position, stream, version, tenant, key, event.id, event.kind, event.schema_version, event.data)
            )
        if append.payloads:
            self.payloads += [(stream, tenant, payload) for payload in append.payloads]
        return Appended(tuple(range(first, self.position + 1)), self.moment)
