"""One journal's spool on one machine: a folder with a file per worker. Sync; its spool calls it from one thread.

A file is held by its worker for as long as that lives. One whose worker is gone is adopted by whoever looks next.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Final, Literal

import msgspec

from engine.parked import park
from engine.spool_entry import (
    Late,
    SpoolEntry,
    decode_entry,
    encode_entry,
    proposed_in,
    spooled,
    told_in,
)
from engine.spool_file import FolderLock, SpoolFile, make_folder
from engine.spool_index import SpooledCall, SpoolIndex, name_of
from events.codec import Codec
from events.types import Proposed

__all__ = ("SUFFIX", "Kept", "SpoolFolder")

SUFFIX: Final = ".spool"

_log = logging.getLogger("calljournal.spool")


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """A call as the spool has it.

    :ivar holder: who is at work on it: this worker, another one that lives, or one that is gone
    :ivar version: the version of its stream in the log; 0: its proposal is not in the log, as far as is known
    :ivar told: its outcome was yielded
    :ivar claim: the id of the Resumed that its stream must end with, or its outcome is dropped
    """

    proposed: Proposed
    outcome: Late | None
    version: int
    told: bool
    claim: str | None = None
    holder: Literal["self", "other", "gone"]

    @property
    def outcome_id(self) -> str | None:
        """The id of its outcome."""
        return None if self.outcome is None else self.outcome.id


class SpoolFolder:
    """The files of one journal. Nothing is made before something is to be kept.

    :param limit: bytes of this worker's file, beyond which no call begins
    """

    def __init__(self, folder: Path, worker: str, limit: int, codec: Codec) -> None:
        self.folder = folder
        self._worker = worker
        self._limit = limit
        self._codec = codec
        self._own: SpoolIndex | None = None
        self._adopted: list[SpoolIndex] = []
        self._others: dict[Path, SpoolIndex] = {}
        self._files = 0

    def __repr__(self) -> str:
        return f"<SpoolFolder {self.folder} {len(self)} calls>"

    def __len__(self) -> int:
        """How many calls this worker has to write to the log."""
        return sum(map(len, self._held()))

    @property
    def knows_any(self) -> bool:
        """Whether anything is known to be in the folder that is not in the log."""
        return any(self._held()) or any(self._others.values())

    @property
    def oldest(self) -> float | None:
        """When the oldest of this worker's calls was kept, in Unix seconds."""
        return min((call.at for index in self._held() if (call := index.first) is not None), default=None)

    def _held(self) -> list[SpoolIndex]:
        return self._adopted if self._own is None else [*self._adopted, self._own]

    def look(self) -> None:
        """Adopt what dead workers left, and see what the living have. :raises OSError: if it cannot be read"""
        if not self._strangers():
            for index in self._others.values():
                index.file.close()
            self._others.clear()
            return
        with FolderLock(self.folder):
            self._meet()

    def _strangers(self) -> list[Path]:
        try:
            found = [Path(entry.path) for entry in os.scandir(self.folder) if entry.name.endswith(SUFFIX)]
        except FileNotFoundError:
            return []
        ours = {index.file.path for index in self._held()}
        return sorted(path for path in found if path not in ours)

    def _meet(self) -> None:
        """Look at the files of others, with the folder locked."""
        there = self._strangers()
        for path in set(self._others).difference(there):
            self._others.pop(path).file.close()
        for path in there:
            file = SpoolFile.adopt(path)
            if file is None:
                self._see(path)
                continue
            if (known := self._others.pop(path, None)) is not None:
                known.file.close()
            index = SpoolIndex(file)
            index.read(file.left(), self._codec)
            if file.damaged:
                _log.error("%s: %d records could not be read; the file is kept beside", path, file.damaged)
            if index:
                _log.warning("%s: %d calls of a worker that is gone are written to the log now", path, len(index))
                self._adopted.append(index)
            else:
                file.remove()

    def _see(self, path: Path) -> None:
        index = self._others.get(path)
        if index is None:
            file = SpoolFile.view(path)
            if file is None:
                return
            index = self._others[path] = SpoolIndex(file)
        index.read(index.file.news(), self._codec)

    def _refreshed(self) -> list[SpoolIndex]:
        """Return what others have, with what they have written since the last look."""
        for index in self._others.values():
            index.read(index.file.news(), self._codec)
        return list(self._others.values())

    def find(self, proposed: Proposed) -> Kept | None:
        """Return what is kept under a call's key. :raises OSError: if it cannot be read"""
        name = name_of(proposed)
        for index in (*self._held(), *self._refreshed()):
            if (call := index.named(name)) is not None:
                return self._kept(index, call)
        return None

    def begin(self, proposed: Proposed, outcome: Late | None) -> Kept | None:
        """Keep a proposal, with what follows it at once; or return what is kept under its key already.

        :raises OSError: if it cannot be kept
        """
        make_folder(self.folder)
        with FolderLock(self.folder):
            self._meet()
            if (known := self.find(proposed)) is not None:
                return known
            self._leave_what_is_lost()
            index = self._writable()
            if index.file.end > self._limit:
                raise OSError(f"the spool {index.file.path} is full ({index.file.end} bytes)")
            self._write(index, spooled(proposed.id, proposed=proposed, outcome=outcome), proposed, outcome)
        return None

    def end(self, proposed: Proposed, outcome: Late, version: int, told: bool, claim: str | None = None) -> Late:
        """Keep what followed a proposal, and return it, or what is kept of that already.

        :param version: of the call's stream in the log; 0: its proposal was kept here
        :raises OSError: if it cannot be kept
        """
        known = self.load(proposed.id)
        if known is not None and known.outcome is not None:
            return known.outcome
        index = next((each for each in self._held() if each.get(proposed.id) is not None), None)
        if index is not None:
            self._write(
                index, spooled(proposed.id, outcome=outcome, version=version, told=told, claim=claim), None, outcome
            )
            return outcome
        # Its proposal has been written to the log meanwhile, where its stream has that one event.
        version = version or 1
        make_folder(self.folder)
        if self._own is None:
            with FolderLock(self.folder):
                self._writable()
        entry = spooled(proposed.id, proposed=proposed, outcome=outcome, version=version, told=told, claim=claim)
        self._write(self._writable(), entry, proposed, outcome)
        return outcome

    def _leave_what_is_lost(self) -> None:
        """Begin another file where somebody has taken ours away: in that, nobody would find what comes now."""
        if self._own is not None and not self._own.file.is_there:
            _log.error("%s has been taken away; what is in it is lost if this process dies now", self._own.file.path)
            self._adopted.append(self._own)
            self._own = None

    def _writable(self) -> SpoolIndex:
        if self._own is None:
            self._files += 1
            path = self.folder / f"{self._worker}.{self._files}{SUFFIX}"
            self._own = SpoolIndex(SpoolFile.create(path))
        return self._own

    def _write(self, index: SpoolIndex, entry: SpoolEntry, proposed: Proposed | None, outcome: Late | None) -> None:
        offset = index.file.append(encode_entry(entry), sync=not entry.written)
        name = None if proposed is None else name_of(proposed)
        index.take(offset, entry, name, None if outcome is None else outcome.id)

    def holds(self, tenant: str, key: str, turn: str) -> bool:
        """Tell whether anything is kept of a key, or of the keys of a turn. :raises OSError: if it cannot be read"""
        names = [call.name for index in (*self._held(), *self._refreshed()) for call in index]
        return any(owner == tenant and (name == key or (turn and name.startswith(f"{turn}:"))) for owner, name in names)

    def pending(self) -> list[str]:
        """Return the proposals of the calls that are to be written, oldest file first, in the order of each."""
        return [call.proposal for index in self._held() for call in index]

    def load(self, proposal: str) -> Kept | None:
        """Return a call that is to be written; None: it was. :raises OSError: if it cannot be read"""
        for index in self._held():
            if (call := index.get(proposal)) is not None:
                return self._kept(index, call)
        return None

    def _kept(self, index: SpoolIndex, call: SpooledCall) -> Kept:
        opening = decode_entry(index.file.read(call.opening))
        ending = opening
        if call.ending is not None and call.ending != call.opening:
            ending = decode_entry(index.file.read(call.ending))
        proposed = proposed_in(opening, self._codec)
        assert proposed is not None
        return Kept(
            proposed=proposed,
            outcome=told_in(ending, self._codec),
            version=ending.version,
            told=ending.told,
            claim=ending.claim,
            holder=self._holder(index),
        )

    def _holder(self, index: SpoolIndex) -> Literal["self", "other", "gone"]:
        # By its name: one of ours that somebody has taken away is among those adopted.
        if index.file.path.name.startswith(f"{self._worker}."):
            return "self"
        return "gone" if index in self._adopted else "other"

    def written(self, proposal: str, outcome_id: str | None) -> None:
        """Forget a call that is in the log, unless it has got another outcome meanwhile.

        :raises OSError: if that cannot be noted
        """
        for index in self._held():
            call = index.get(proposal)
            if call is not None and call.outcome_id == outcome_id:
                # Not synced: to write it to the log once more would change nothing.
                self._write(index, SpoolEntry(proposal=proposal, at=0.0, written=True), None, None)
                if not index:
                    self._take_away(index)
                return

    def park(self, proposal: str, outcome_id: str | None, reason: str) -> None:
        """Put a call aside that the log refuses for good, for people to see. :raises OSError: if it cannot be kept"""
        kept = self.load(proposal)
        if kept is not None and kept.outcome_id == outcome_id:
            park(self.folder, kept.proposed, kept.outcome, reason)
            self.written(proposal, outcome_id)

    def _take_away(self, index: SpoolIndex) -> None:
        with FolderLock(self.folder):
            index.file.remove()
        if index is self._own:
            self._own = None
        else:
            self._adopted.remove(index)

    def close(self) -> None:
        """Let go of every file: what is left in them is for the next worker."""
        for index in (*self._held(), *self._others.values()):
            index.file.close()
        self._own = None
        self._adopted.clear()
        self._others.clear()
