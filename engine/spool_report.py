"""What a journal's spool holds on this machine, for people who look at it from outside: nothing is held or changed."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec

from engine.parked import parked_calls
from engine.spool_file import SpoolFile
from engine.spool_folder import SUFFIX
from engine.spool_index import SpoolIndex
from events.codec import Codec

__all__ = ("SpoolReport", "inspect_spool")


class SpoolReport(msgspec.Struct, frozen=True, kw_only=True):
    """A journal's spool on this machine.

    :ivar held: calls that living engines will write to the log, and ``left``, those of engines that are gone
    :ivar oldest: seconds for which the oldest of them has been waiting
    :ivar parked: calls that the log refused for good
    :ivar damaged: files of which something could not be read
    """

    folder: Path
    held: int = 0
    left: int = 0
    oldest: float = 0.0
    parked: int = 0
    damaged: int = 0


def inspect_spool(folder: Path) -> SpoolReport:
    """Return what there is in a spool's folder; see ``engine.spool_place``.

    :raises OSError: if it cannot be read
    """
    if not folder.is_dir():
        return SpoolReport(folder=folder)
    counts = {True: 0, False: 0}
    oldest: list[float] = []
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        index = _read(path)
        if index is not None and index.first is not None:
            counts[_is_held(path)] += len(index)
            oldest.append(index.first.at)
    return SpoolReport(
        folder=folder,
        held=counts[True],
        left=counts[False],
        oldest=max(time.time() - min(oldest), 0.0) if oldest else 0.0,
        parked=len(parked_calls(folder)),
        damaged=len(list(folder.glob("*.damaged"))),
    )


def _read(path: Path) -> SpoolIndex | None:
    file = SpoolFile.view(path)
    if file is None:
        return None
    index = SpoolIndex(file)
    try:
        index.read(file.news(), Codec())
    finally:
        file.close()
    return index


def _is_held(path: Path) -> bool:
    # For a moment only: whoever wants it meanwhile looks again.
    file = SpoolFile.adopt(path)
    if file is None:
        return True
    file.close()
    return False
