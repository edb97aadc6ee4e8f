"""Rows on their way to a result: column names that differ, values as JSON, no more than fits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from engine.sql.values import plain

__all__ = ("Column", "Rows", "Taker")

_FIRST: Final = 1
_MOST: Final = 200


class Column(msgspec.Struct, frozen=True):
    """A column of a result, by the name its values go by, and its type."""

    name: str
    type: str


class Rows(msgspec.Struct, frozen=True):
    """What a result has room for.

    :ivar truncated: there are more rows
    :ivar note: why, where it is not the number of rows
    """

    columns: tuple[Column, ...]
    data: list[dict[str, Any]]
    truncated: bool = False
    note: str | None = None


class Taker:
    """Takes rows until a result is full.

    :ivar full: there is no room for one more
    :ivar seen: rows that came, taken or not
    """

    def __init__(self, attributes: Iterable[Any], rows: int, size: int) -> None:
        """Begin with none.

        :param attributes: the driver's, of the result's columns
        :param rows: how many are taken
        :param size: bytes of JSON that they may have together
        """
        self.columns = _named(attributes)
        self.full = False
        self.seen = 0
        self._data: list[dict[str, Any]] = []
        self._rows = rows
        self._size = size
        self._taken = 0
        self._note: str | None = None

    @property
    def wanted(self) -> int:
        """How many rows to fetch next: few at first, then as many as are likely to fit, by those that came."""
        if not self._data:
            return _FIRST
        left = (self._size - self._taken) // max(1, self._taken // len(self._data))
        # One more than there is room for: it says whether there are more.
        return max(1, min(_MOST, left, self._rows - len(self._data) + 1))

    def take(self, records: Sequence[Any]) -> None:
        """Take rows, as many as fit."""
        self.seen += len(records)
        for record in records:
            if len(self._data) >= self._rows:
                self.full = True
                return
            row = {column.name: plain(value, column.type) for column, value in zip(self.columns, record, strict=True)}
            size = len(msgspec.json.encode(row)) + 1
            if self._taken + size > self._size:
                self.stop(_too_long(len(self._data), self._size))
                return
            self._taken += size
            self._data.append(row)

    def stop(self, note: str) -> None:
        """Take no more, for a reason."""
        self.full = True
        self._note = note

    def rows(self) -> Rows:
        """Return what was taken."""
        return Rows(self.columns, self._data, self.full, self._note)


def _named(attributes: Iterable[Any]) -> tuple[Column, ...]:
    """Return the columns, those with a name that is taken as ``name#2``, ``name#3``."""
    names: dict[str, None] = {}
    columns = []
    for attribute in attributes:
        name, number = attribute.name, 2
        while name in names:
            name, number = f"{attribute.name}#{number}", number + 1
        names[name] = None
        columns.append(Column(name, attribute.type.name))
    return tuple(columns)


def _too_long(taken: int, size: int) -> str:
    if taken == 0:
        return f"The first row alone has over {size:,} bytes; select fewer columns, or parts of them: left(x, 1000)."
    return f"The rows shown have nearly {size:,} bytes, which is the most; select less."
