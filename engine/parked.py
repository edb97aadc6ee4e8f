"""Calls that the log refuses for good: put aside, one JSON object a line, for people to look at (DESIGN 6)."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from engine.spool_entry import Late
from events.types import Denied, Executed, Failed, Proposed

__all__ = ("PARKED", "ParkedCall", "park", "parked_calls", "parked_size")

PARKED: Final = "parked.jsonl"
"""The file's name, in the folder of its journal's spool."""


class ParkedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that ran, or was refused, while the journal was away, and that the log then did not take.

    :ivar reason: why, as the log said it
    """

    parked_at: datetime
    reason: str
    proposed: Proposed
    outcome: Executed | Failed | Denied | None = None


def park(folder: Path, proposed: Proposed, outcome: Late | None, reason: str) -> None:
    """Put a call aside; on disk on return. :raises OSError: if that cannot be done"""
    call = ParkedCall(parked_at=datetime.now(UTC), reason=reason, proposed=proposed, outcome=outcome)
    line = msgspec.json.encode(call) + b"\n"
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(folder / PARKED, flags, 0o600)
    try:
        if _is_cut_off(descriptor):
            # What a full disk cut off must not take this one along.
            line = b"\n" + line
        if os.write(descriptor, line) < len(line):
            raise OSError(f"{folder / PARKED} was written in part only")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _is_cut_off(descriptor: int) -> bool:
    size = os.fstat(descriptor).st_size
    return size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"


def parked_size(folder: Path) -> int:
    """Return how large the file of what was put aside is; 0 where there is none."""
    try:
        return (folder / PARKED).stat().st_size
    except OSError:
        return 0


def parked_calls(folder: Path) -> list[ParkedCall]:
    """Return what was put aside, each call once; a line that cannot be read is passed over.

    :raises OSError: if the file cannot be read
    """
    found: dict[Any, ParkedCall] = {}
    try:
        lines = (folder / PARKED).read_bytes().splitlines()
    except FileNotFoundError:
        return []
    for line in lines:
        try:
            call = msgspec.json.decode(line, type=ParkedCall)
        except msgspec.DecodeError:
            continue
        found[call.proposed.id] = call
    return list(found.values())
