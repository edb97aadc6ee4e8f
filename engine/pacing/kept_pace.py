"""The pace of all workers together: one number per key, in the journal's database."""

from __future__ import annotations

import time
from functools import partial
from typing import Any, Final

import anyio
import msgspec
from sqlalchemy import BigInteger, TextClause, bindparam, func, select, text

from engine.pacing.rate import SECOND, Rate, TooSoon
from events.persistence import run_to_end
from events.schema import Key

__all__ = ("PATIENCE", "Place", "kept_turn")

PATIENCE: Final = 5.0
"""Seconds that a call waits for its turn, at most."""

_CLOCKS: Final = {
    "sqlite": ":now",
    "postgresql": "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)",
}
"""Now, in microseconds. All processes of one SQLite file are on one machine; machines of one Postgres disagree."""

# What is further away than it can be was left by another clock, or another rate.
_BASE: Final = "CASE WHEN kept.due_at BETWEEN {now} AND {now} + :horizon THEN kept.due_at ELSE {now} END"

_TAKE: Final = (
    "INSERT INTO tool_rates AS kept (tenant, tool_id, action, due_at)"
    " VALUES (:tenant, :tool_id, :action, {now} + :every)"
    " ON CONFLICT (tenant, tool_id, action) DO UPDATE SET due_at = {base} + :every"
    " WHERE {base} + :every <= {now} + :capacity + :patience"
)
_LOOK: Final = (
    "SELECT due_at - {now} FROM tool_rates WHERE tenant = :tenant AND tool_id = :tool_id AND action = :action"
)
_NUMBERS: Final = ("now", "every", "capacity", "patience", "horizon")


class Place(msgspec.Struct, frozen=True):
    """What a rate is held for.

    :ivar tenant: the encoded tenant of the row's owner, whoever calls
    """

    tenant: str
    tool_id: str
    action: str


class _Statement:
    """A statement for one database; of the values it is given it takes those that it knows."""

    def __init__(self, template: str, dialect: str) -> None:
        filled = template.replace("{base}", _BASE).replace("{now}", _CLOCKS[dialect])
        numbers = [name for name in _NUMBERS if f":{name}" in filled]
        self._names = (*Place.__struct_fields__, *numbers)
        typed = [bindparam(name, type_=BigInteger() if name in numbers else Key()) for name in self._names]
        self._text = text(filled).bindparams(*typed)

    def bind(self, values: dict[str, Any]) -> TextClause:
        return self._text.bindparams(**{name: values[name] for name in self._names})


_STATEMENTS: Final = {dialect: (_Statement(_TAKE, dialect), _Statement(_LOOK, dialect)) for dialect in _CLOCKS}


async def kept_turn(store: Any, place: Place, rate: Rate, longest: float) -> None:
    """Take a turn, in one statement, and wait for it; who comes first is first, in whatever process.

    A turn is taken before it is waited for: one whose wait is cancelled has been used.

    :param store: a :class:`events.store.Store` that is a database
    :param longest: seconds to wait, at most
    :raises TooSoon: if its turn would come later; it was not taken
    :raises LogUnavailable: if it was not taken, or that is not known
    """
    patience = round(min(longest, PATIENCE) * SECOND)
    values = {
        **msgspec.to_builtins(place),
        "every": rate.every,
        "capacity": rate.capacity,
        "patience": patience,
        "horizon": rate.capacity + round(PATIENCE * SECOND),
    }
    take, look = _STATEMENTS[store.dialect]

    def run(connection: Any) -> tuple[bool, int]:
        known = {**values, "now": time.time_ns() // 1000}
        if store.dialect == "postgresql":
            # A worker that stands still in the middle of its turn must not hold up all others.
            connection.execute(select(func.set_config("lock_timeout", f"{PATIENCE:g}s", True)))
        # An SQLite of 2020 has no RETURNING.
        is_taken = connection.execute(take.bind(known)).rowcount == 1
        return is_taken, int(connection.execute(look.bind(known)).scalar_one())

    is_taken, due = await run_to_end(partial(store.transact, run))
    if not is_taken:
        raise TooSoon(rate.lack(due, 0) / SECOND)
    await anyio.sleep(rate.wait(due, 0) / SECOND)
