"""What ``calljournal doctor`` finds."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

__all__ = ("Finding", "Level")

Level: TypeAlias = Literal["ok", "warning", "fault"]


class Finding(msgspec.Struct, frozen=True):
    """One thing looked at.

    :ivar subject: what was looked at
    :ivar message: how it is
    :ivar advice: what to do about it; empty where there is nothing to do
    """

    level: Level
    subject: str
    message: str
    advice: str = ""
