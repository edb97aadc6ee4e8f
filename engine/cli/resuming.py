"""Where a long run can begin again: a small file."""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec

from events.errors import Refused
from projections.report import Resume

__all__ = ("ResumeFile",)

_EVERY = 1.0
"""Seconds between two writings."""


class ResumeFile:
    """Keeps a ``Resume`` in a file, replaced as a whole; without a path it keeps nothing."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._written = 0.0

    def read(self) -> Resume | None:
        """Return what the file says, None if there is no file. :raises Refused: if it is something else"""
        if self._path is None or not self._path.exists():
            return None
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=Resume)
        except msgspec.DecodeError as error:
            raise Refused(
                f"{str(self._path)!r} is no resume file of verify ({error}); remove it, or name another"
            ) from error

    def write(self, resume: Resume) -> None:
        """Keep it, at most once a second. :raises OSError: if the file cannot be written"""
        now = time.monotonic()
        if self._path is None or now - self._written < _EVERY:
            return
        self._written = now
        fresh = self._path.with_name(f"{self._path.name}.new")
        fresh.write_bytes(msgspec.json.encode(resume))
        os.replace(fresh, self._path)

    def remove(self) -> None:
        """Forget it: the run has come to its end."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)
