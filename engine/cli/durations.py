"""Times as people write them: 90s, 30m, 1h30m, 7d."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

import click

__all__ = ("duration", "duration_text")

_FORM: Final = re.compile(r"(?:(\d{1,6})d)?(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6})s)?")


def duration(text: str) -> timedelta:
    """Return the time that a text means. :raises click.BadParameter: if it is none, or not more than nothing"""
    found = _FORM.fullmatch(text.strip())
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups()) if found else (0, 0, 0, 0)
    meant = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    if not meant:
        raise click.BadParameter(f"{text!r} is no length of time; write e.g. 30m, 1h30m or 7d")
    return meant


def duration_text(time: timedelta) -> str:
    """Return a time in its two largest units."""
    seconds = max(0, int(time.total_seconds()))
    parts = []
    for unit, size in (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)):
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts[:2]) or "0s"
