"""Which prices are wanted, and what one is."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from math import isfinite
from typing import Any, Final

import msgspec

from engine.refusals import quoted
from events.errors import Refused

__all__ = ("MOST", "Quote", "Wanted", "moment_of", "number", "stamp", "symbols_in")

MOST: Final = 10
"""Symbols, and currencies, of one call."""

_SYMBOL: Final = re.compile(r"[A-Z0-9]{1,15}")
_FIRST: Final = datetime(2009, 1, 3, tzinfo=UTC)


class Wanted(msgspec.Struct, frozen=True):
    """Each of the symbols in each of the currencies, in capitals.

    :ivar at: a moment in the past; None: now
    """

    symbols: tuple[str, ...]
    currencies: tuple[str, ...]
    at: datetime | None = None

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Every symbol with every currency."""
        return [(symbol, currency) for symbol in self.symbols for currency in self.currencies]


class Quote(msgspec.Struct, frozen=True, kw_only=True):
    """One price.

    :ivar change_24h_percent: in the last 24 hours; None: it is not told
    :ivar updated: when the price was made (ISO 8601, UTC); None: it is not told
    """

    symbol: str
    currency: str
    price: float
    change_24h_percent: float | None = None
    updated: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return it as the tool's result has it."""
        content: dict[str, Any] = msgspec.to_builtins(self)
        return content


def symbols_in(name: str, text: str) -> tuple[str, ...]:
    """Return the symbols of a text with commas between them, in capitals, each once.

    :raises Refused: if one is none, or there are too many
    """
    symbols = tuple(dict.fromkeys(part.strip().upper() for part in text.split(",")))
    for symbol in symbols:
        if not _SYMBOL.fullmatch(symbol):
            raise Refused(f'{quoted(symbol)} in "{name}" is no symbol: 1 to 15 letters and digits, like BTC.')
    if len(symbols) > MOST:
        raise Refused(f'"{name}" has {len(symbols)} symbols; at most {MOST} are taken.')
    return symbols


def moment_of(text: str, now: datetime) -> datetime:
    """Return the moment that a date, or a date and time, names; without a zone it is UTC.

    :raises Refused: if it names none, or one that has no prices
    """
    try:
        stated = datetime.fromisoformat(text.strip())
        moment = stated if stated.tzinfo else stated.replace(tzinfo=UTC)
        if not _FIRST <= moment <= now:
            raise Refused(f'"at" must be between {_FIRST:%Y-%m-%d} and now.')
    except (ValueError, OverflowError):
        raise Refused('"at" must be a date like 2026-01-31, or with a time: 2026-01-31T12:00Z.') from None
    return moment


def number(value: Any) -> float | None:
    """Return a number that can be a price's; None: it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        return None
    return float(value)


def stamp(seconds: Any) -> str | None:
    """Return Unix seconds as ISO 8601; None: they are none."""
    if (told := number(seconds)) is None or not 0 < told < 1e11:
        return None
    return datetime.fromtimestamp(told, UTC).isoformat()
