"""Dates, times and intervals as the server sends them, in ISO 8601.

Not through ``datetime``, which knows neither infinity nor the years before 1 or after 9999, and no months.
"""

from __future__ import annotations

from typing import Final

__all__ = ("date_text", "interval_text", "time_text", "timestamp_text", "timestamptz_text", "timetz_text")

_DAY: Final = 86_400_000_000
_EPOCH: Final = 730_425
"""Days from 0000-03-01 to 2000-01-01, from which the server counts."""
_CYCLE: Final = 146_097
_INFINITE_DAYS: Final = (-(2**31), 2**31 - 1)
_INFINITE: Final = (-(2**63), 2**63 - 1)


def date_text(sent: tuple[int]) -> str:
    """Return a date, e.g. ``2024-05-01``; beyond the years 0 to 9999 with a sign; ``infinity``."""
    (days,) = sent
    if days in _INFINITE_DAYS:
        return _infinite(days)
    # Years from March on: then the leap day is a year's last.
    cycle, of_cycle = divmod(days + _EPOCH, _CYCLE)
    of_cycle_years = (of_cycle - of_cycle // 1460 + of_cycle // 36524 - of_cycle // 146096) // 365
    of_year = of_cycle - (365 * of_cycle_years + of_cycle_years // 4 - of_cycle_years // 100)
    month = (5 * of_year + 2) // 153
    day = of_year - (153 * month + 2) // 5 + 1
    year = cycle * 400 + of_cycle_years + (month >= 10)
    shown = f"{year:04d}" if 0 <= year <= 9999 else f"{year:+05d}"
    return f"{shown}-{month + 3 if month < 10 else month - 9:02d}-{day:02d}"


def time_text(sent: tuple[int]) -> str:
    """Return a time, e.g. ``12:00:00.5``."""
    seconds, micros = divmod(sent[0], 1_000_000)
    fraction = f".{micros:06d}" if micros else ""
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{fraction}"


def timetz_text(sent: tuple[int, int]) -> str:
    """Return a time with its offset, e.g. ``12:00:00+02:00``. The server sends seconds west of Greenwich."""
    micros, west = sent
    east = abs(west)
    seconds = f":{east % 60:02d}" if east % 60 else ""
    offset = f"{'+' if west <= 0 else '-'}{east // 3600:02d}:{east // 60 % 60:02d}{seconds}"
    return time_text((micros,)) + ("Z" if west == 0 else offset)


def timestamp_text(sent: tuple[int]) -> str:
    """Return a moment without a time zone, e.g. ``2024-05-01T12:00:00``; ``infinity``."""
    if sent[0] in _INFINITE:
        return _infinite(sent[0])
    days, micros = divmod(sent[0], _DAY)
    return f"{date_text((days,))}T{time_text((micros,))}"


def timestamptz_text(sent: tuple[int]) -> str:
    """Return a moment in UTC, e.g. ``2024-05-01T12:00:00Z``; ``infinity``."""
    return timestamp_text(sent) + ("" if sent[0] in _INFINITE else "Z")


def interval_text(sent: tuple[int, int, int]) -> str:
    """Return an interval, e.g. ``P1Y2M3DT4H5M6.5S``; months, days and seconds stay what they are, signs too."""
    months, days, micros = sent
    for extreme in (0, 1):
        if sent == (_INFINITE_DAYS[extreme], _INFINITE_DAYS[extreme], _INFINITE[extreme]):
            return _infinite(days)
    years, months = _parts(months, 12)
    hours, rest = _parts(micros, 3_600_000_000)
    minutes, rest = _parts(rest, 60_000_000)
    dated = "".join(f"{number}{unit}" for number, unit in ((years, "Y"), (months, "M"), (days, "D")) if number)
    timed = "".join(f"{number}{unit}" for number, unit in ((hours, "H"), (minutes, "M")) if number)
    if rest or not (dated or timed):
        seconds, micros = divmod(abs(rest), 1_000_000)
        fraction = f".{micros:06d}".rstrip("0") if micros else ""
        timed += f"{'-' * (rest < 0)}{seconds}{fraction}S"
    return f"P{dated}{'T' if timed else ''}{timed}"


def _parts(number: int, size: int) -> tuple[int, int]:
    """Divide towards zero, so that both parts have the number's sign."""
    whole, rest = divmod(abs(number), size)
    return (-whole, -rest) if number < 0 else (whole, rest)


def _infinite(sign: int) -> str:
    return "infinity" if sign > 0 else "-infinity"
