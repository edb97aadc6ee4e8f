"""The JSON form of a database's values: stable, exact, and another for each value that differs.

===================================  ==================================================================================
type                                 JSON
===================================  ==================================================================================
boolean, text, integers              as they are; integers exact, whatever their size
numeric, money                       text: a number would lose digits; ``"NaN"``, ``"Infinity"``
real, double precision               a number, the shortest that is the same; ``"NaN"``, ``"Infinity"``, ``"-Infinity"``
date, time, timestamp, interval      ISO 8601 text; with a time zone in UTC, as ``Z``; ``"infinity"``
uuid, inet, bit, ranges, and others  text, ranges as ``"[1,5)"``
bytea                                base64 text
json, jsonb                          their content; numbers that a double cannot hold as text, as is all of what is
                                     nested more than 100 deep
arrays, multiranges, points          lists
composite types                      objects, those without names lists
===================================  ==================================================================================
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable
from decimal import Decimal
from math import isfinite, isnan
from typing import Any, Final

import msgspec
from asyncpg import Connection, Range, Record
from asyncpg.types import BitString, Path

from engine.sql.moments import (
    date_text,
    interval_text,
    time_text,
    timestamp_text,
    timestamptz_text,
    timetz_text,
)

__all__ = ("plain", "read_exactly")

_TUPLES: Final[tuple[tuple[str, Callable[..., str]], ...]] = (
    ("date", date_text),
    ("time", time_text),
    ("timetz", timetz_text),
    ("timestamp", timestamp_text),
    ("timestamptz", timestamptz_text),
    ("interval", interval_text),
)
_DEEPEST: Final = 100
_AS_THEY_ARE: Final = (str, int, bool, type(None))


async def read_exactly(connection: Connection) -> None:
    """Have the driver read those types exactly that it would read roughly, or not at all. Sends nothing."""
    for name, decoder in _TUPLES:
        await connection.set_type_codec(name, schema="pg_catalog", encoder=str, decoder=decoder, format="tuple")
    for name, read in (("float4", _float4), ("json", _json), ("jsonb", _jsonb)):
        await connection.set_type_codec(name, schema="pg_catalog", encoder=bytes, decoder=read, format="binary")


def plain(value: Any, kind: str = "") -> Any:
    """Return a value that the driver has read as JSON content.

    :param kind: the column's type
    """
    if kind == "pg_lsn" and isinstance(value, int):
        return f"{value >> 32:X}/{value & 0xFFFFFFFF:X}"
    if isinstance(value, _AS_THEY_ARE):
        return value
    if isinstance(value, _Content):
        return value.content
    if isinstance(value, float):
        return value if isfinite(value) else _infinite(value)
    if isinstance(value, bytes):
        return value.decode("latin-1") if kind == "char" else base64.b64encode(value).decode("ascii")
    if isinstance(value, Record):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, Range):
        return _range(value)
    if isinstance(value, BitString):
        return value.as_string().replace(" ", "")
    if kind == "tid":
        return f"({value[0]},{value[1]})"
    if isinstance(value, list | tuple | Path):
        return [plain(item) for item in value]
    return str(value)


class _Content(msgspec.Struct, frozen=True):
    """JSON content, told from the lists and texts that the driver makes of other types."""

    content: Any


def _range(value: Any) -> str:
    if value.isempty:
        return "empty"
    lower = "" if value.lower is None else str(plain(value.lower))
    upper = "" if value.upper is None else str(plain(value.upper))
    return f"{'[' if value.lower_inc else '('}{lower},{upper}{']' if value.upper_inc else ')'}"


def _infinite(value: float) -> str:
    return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _float4(sent: bytes) -> float:
    """Return the shortest number that is the same in four bytes."""
    value: float = struct.unpack("!f", sent)[0]
    for digits in range(6, 9):
        shorter = float(f"{value:.{digits}g}")
        if isfinite(value) and abs(shorter) < 3.4e38 and struct.pack("!f", shorter) == bytes(sent):
            return shorter
    return value


def _json(sent: bytes) -> _Content:
    try:
        content = msgspec.json.Decoder(float_hook=_exact).decode(sent)
    except RecursionError:
        return _Content(str(sent, "utf-8"))
    return _Content(str(sent, "utf-8") if _is_deep(content) else content)


def _jsonb(sent: bytes) -> _Content:
    # The first byte is the format's version.
    return _json(sent[1:])


def _is_deep(content: Any) -> bool:
    """Tell whether JSON content is nested deeper than whoever handles it later may stand."""
    level = [content]
    for _ in range(_DEEPEST):
        level = [item for each in level if isinstance(each, list | dict) for item in _items(each)]
        if not level:
            return False
    return True


def _items(content: Any) -> Any:
    return content.values() if isinstance(content, dict) else content


def _exact(digits: str) -> float | str:
    """Return a number of JSON as a number where a double is the same, else as its text."""
    number = float(digits)
    return number if isfinite(number) and Decimal(repr(number)) == Decimal(digits) else digits
