"""One batch of appends as the arguments of the append function, and its answer as verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from events.store import Appended, InlineProjection, Refusal, StreamAppend

__all__ = ("AppendCall",)

_APPEND_ARRAYS = 11
_EVENT_ARRAYS = 6
_PAYLOAD_ARRAYS = 4
_NO_GUARD = (None, None, False, False)


class AppendCall:
    """Calls the projection's append function. Pure: it knows arrays and rows, no connection.

    :param epoch: SQL of a number that comes back with every batch
    """

    def __init__(self, projection: InlineProjection, epoch: str | None = None) -> None:
        columns = projection.insert_columns
        self._width = len(columns)
        self._places = tuple([columns.index(name) for name in projection.update_columns])
        count = 1 + _APPEND_ARRAYS + self._width + _EVENT_ARRAYS + _PAYLOAD_ARRAYS
        marks = ", ".join(f"${number}" for number in range(1, count + 1))
        # The epoch's subselect has the statement's own snapshot: what was committed before it was sent is seen.
        self.statement = f"SELECT *, ({epoch or 0}) AS epoch FROM {projection.postgres_function}({marks})"  # noqa: S608

    def arguments(self, appends: Sequence[StreamAppend], together: bool) -> list[Any]:
        """Return the function's arguments; ``together``: all appends or none."""
        heads: list[tuple[Any, ...]] = []
        rows: list[Sequence[Any]] = []
        events: list[tuple[Any, ...]] = []
        payloads: list[tuple[Any, ...]] = []
        for number, append in enumerate(appends, 1):
            heads.append(_head(append, len(events) + 1))
            rows.append(self._row(append))
            version = append.expected_version
            for event in append.events:
                version += 1
                events.append((number, version, event.id, event.kind, event.schema_version, event.data))
            payloads += [(number, payload.digest, payload.length, payload.content) for payload in append.payloads]
        return [
            together,
            *zip(*heads, strict=True),
            *[_column(column) for column in zip(*rows, strict=True)],
            *zip(*events, strict=True),
            *(zip(*payloads, strict=True) if payloads else [None] * _PAYLOAD_ARRAYS),
        ]

    def _row(self, append: StreamAppend) -> Sequence[Any]:
        """Return the state columns in the order of a new row; a change leaves what it does not touch None."""
        values = append.change.values
        if append.change.guard is None:
            return values
        row: list[Any] = [None] * self._width
        for place, value in zip(self._places, values, strict=True):
            row[place] = value
        return row

    def epoch(self, record: Any) -> int:
        """Return the epoch that came with an answer."""
        return int(record["epoch"] or 0)

    def verdicts(self, appends: Sequence[StreamAppend], record: Any) -> list[Appended | Refusal]:
        """Return one verdict per append, from the function's only row.

        Of a unit that was refused as a whole, the innocent appends are Appended at no position.
        """
        moment: datetime = record["o_at"]
        positions = record["o_positions"] or ()
        lost = {number: index for index, number in enumerate(record["o_lost"] or ())}
        known = _known(record) if lost else {}
        first = 0
        verdicts: list[Appended | Refusal] = []
        for number, append in enumerate(appends, 1):
            last = first + len(append.events)
            if number in lost:
                verdicts.append(_repeated(known, first, last) or _refusal(record, lost[number]))
            else:
                verdicts.append(Appended(tuple(positions[first:last]), moment))
            first = last
        return verdicts


def _head(append: StreamAppend, first: int) -> tuple[Any, ...]:
    guard = append.change.guard
    return (
        append.tenant,
        append.key,
        append.expected_version,
        first,
        len(append.events),
        *(_NO_GUARD if guard is None else (guard.statuses, guard.phases, guard.not_late, guard.idempotent)),
        append.dead_worker,
        append.check_repeat,
    )


def _column(values: tuple[Any, ...]) -> tuple[Any, ...] | None:
    # Most columns say nothing in most batches; no array is cheaper than one of nulls, and means the same.
    return None if values.count(None) == len(values) else values


def _known(record: Any) -> dict[int, tuple[int, datetime]]:
    """Return the events that are in their stream already: number (from 0) to position and moment."""
    numbers = record["o_known"] or ()
    places = zip(record["o_known_position"] or (), record["o_known_at"] or (), strict=True)
    return {number - 1: place for number, place in zip(numbers, places, strict=True)}


def _repeated(known: dict[int, tuple[int, datetime]], first: int, last: int) -> Appended | None:
    places = [known[number] for number in range(first, last) if number in known]
    if len(places) < last - first:
        return None
    return Appended(tuple([position for position, _ in places]), places[0][1])


def _refusal(record: Any, index: int) -> Refusal:
    return Refusal(
        record["o_version"][index],
        record["o_status"][index],
        record["o_gate"][index],
        record["o_pause_type"][index],
        bool(record["o_late"][index]),
        record["o_lease_alive"][index],
    )
