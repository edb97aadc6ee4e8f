"""Moments against ``datetime`` where that knows them, and where it does not."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis.strategies import dates, integers

from engine.sql.moments import date_text, interval_text, time_text, timestamp_text, timestamptz_text, timetz_text

_START = date(2000, 1, 1)
_HOUR = 3_600_000_000


@given(dates())
def test_dates_are_those_of_the_calendar(day: date) -> None:
    assert date_text(((day - _START).days,)) == day.isoformat()


@given(integers(-(2**31) + 2, 2**31 - 2))
def test_every_day_follows_the_one_before(days: int) -> None:
    # The calendar repeats itself every 400 years, and that is 146,097 days.
    cycles = (days + 146_097 * 2) // 146_097
    shown, same = date_text((days,)), _START + timedelta(days - cycles * 146_097)
    year, month_and_day = shown[:-6], shown[-5:]
    assert int(year) == same.year + cycles * 400
    assert month_and_day == same.isoformat()[5:]


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        (date_text((2**31 - 1,)), "infinity"),
        (date_text((-(2**31),)), "-infinity"),
        (time_text((24 * _HOUR,)), "24:00:00"),
        (time_text((1,)), "00:00:00.000001"),
        (timetz_text((12 * _HOUR, -7200)), "12:00:00+02:00"),
        (timetz_text((12 * _HOUR, 19800)), "12:00:00-05:30"),
        (timetz_text((0, 0)), "00:00:00Z"),
        (timestamp_text((-1,)), "1999-12-31T23:59:59.999999"),
        (timestamptz_text((0,)), "2000-01-01T00:00:00Z"),
        (timestamptz_text((2**63 - 1,)), "infinity"),
        (timestamp_text((-(2**63),)), "-infinity"),
        (interval_text((14, 3, 4 * _HOUR + 5 * 60_000_000 + 6_500_000)), "P1Y2M3DT4H5M6.5S"),
        (interval_text((-14, 3, -500_000)), "P-1Y-2M3DT-0.5S"),
        (interval_text((0, 0, 0)), "PT0S"),
        (interval_text((0, 1, 0)), "P1D"),
        (interval_text((2**31 - 1, 2**31 - 1, 2**63 - 1)), "infinity"),
    ],
)
def test_forms(shown: str, said: str) -> None:
    assert shown == said
