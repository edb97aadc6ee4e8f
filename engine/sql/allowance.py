"""How much one call may take of a database, and bring back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from engine.sql.errors import SqlError

__all__ = ("COST", "ROWS", "SECONDS", "SIZE", "Allowance")

ROWS: Final = 1000
"""Rows of a result, at most."""
SIZE: Final = 256 * 1024
"""Bytes of JSON of a result's rows, at most."""
COST: Final = 1e12
"""What a row may set as its limit, at most."""
SECONDS: Final = 30.0
"""For a statement, where its row says nothing."""

_LONGEST: Final = 100.0
_CONNECT: Final = 10.0
_AROUND: Final = 5.0
_LEAVE: Final = 4.0
"""Seconds that a call keeps to cancel its statement and take its leave."""


class Allowance(msgspec.Struct, frozen=True):
    """The bounds of one call.

    :ivar connect: seconds to connect in
    :ivar statement: seconds that the server spends on the statement
    :ivar total: seconds for all of it
    :ivar rows: in a result
    :ivar size: bytes of JSON in a result
    :ivar cost: what the server's planner may estimate of a statement, in its units; 0: whatever it estimates
    """

    connect: float
    statement: float
    total: float
    rows: int
    size: int
    cost: float = 0.0

    @classmethod
    def of(cls, config: Mapping[str, Any], max_rows: Any, connect: float, left: float) -> Allowance:
        """Return what a row allows a call, which may ask for less.

        :param connect: seconds to connect in, as the connection string says; 0: it does not
        :param left: seconds until the call must be over
        :raises SqlError: if the configuration, or what is asked for, is out of bounds
        """
        rows = int(_within("max_rows", config.get("max_rows"), ROWS, 1, ROWS))
        statement = _within("timeout", config.get("timeout"), SECONDS, 1, _LONGEST)
        total = min(left - _LEAVE if left > 2 * _LEAVE else left / 2, _CONNECT + statement + _AROUND)
        if total <= 0:
            raise SqlError("no time is left for it")
        return cls(
            min(connect or _CONNECT, _CONNECT, total),
            min(statement, total),
            total,
            min(rows, int(_within("max_rows", max_rows, ROWS, 1, ROWS))),
            int(_within("max_bytes", config.get("max_bytes"), SIZE, 1024, SIZE)),
            _within("max_cost", config.get("max_cost"), 0.0, 1, COST),
        )


def _within(name: str, value: Any, default: float, least: float, most: float) -> float:
    if value in (None, ""):
        return default
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value[:9])
    if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value <= most:
        raise SqlError(f"{name} must be a number from {least:g} to {most:g}")
    return value
