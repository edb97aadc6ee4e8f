"""What a spool's files hold, in memory: which calls, and where their events stand; never the events themselves."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import TypeAlias

import msgspec

from engine.spool_entry import SpoolEntry, decode_entry, proposed_in, told_in
from engine.spool_file import SpoolFile, SpoolRecord
from events.codec import Codec
from events.keys import tenant_column
from events.types import Proposed

__all__ = ("CallName", "SpoolIndex", "SpooledCall", "name_of")

_log = logging.getLogger("calljournal.spool")

CallName: TypeAlias = tuple[str, str]
"""A call's encoded tenant and its key."""


def name_of(proposed: Proposed) -> CallName:
    """Return the name under which a call is looked for."""
    return tenant_column(proposed.user_id), proposed.key


class SpooledCall:
    """A call of which something is to be written to the log.

    :ivar name: its tenant and key
    :ivar file: where its events stand
    :ivar proposal: the id of its proposal, which stands at ``opening``
    :ivar ending: where its outcome stands; None: there is none yet
    :ivar outcome_id: the id of that outcome
    :ivar at: Unix seconds at which it was first kept
    """

    __slots__ = ("at", "ending", "file", "name", "opening", "outcome_id", "proposal")

    def __init__(self, file: SpoolFile, proposal: str, name: CallName, opening: int, at: float) -> None:
        self.file = file
        self.proposal = proposal
        self.name = name
        self.opening = opening
        self.ending: int | None = None
        self.outcome_id: str | None = None
        self.at = at

    def __repr__(self) -> str:
        return f"<SpooledCall {self.name[1]}{'' if self.ending is None else ' ended'}>"


class SpoolIndex:
    """The calls of one file that are not in the log yet, in their order."""

    def __init__(self, file: SpoolFile) -> None:
        self.file = file
        self._calls: dict[str, SpooledCall] = {}
        self._by_name: dict[CallName, SpooledCall] = {}

    def __repr__(self) -> str:
        return f"<SpoolIndex of {len(self._calls)} calls in {self.file!r}>"

    def __len__(self) -> int:
        return len(self._calls)

    def __iter__(self) -> Iterator[SpooledCall]:
        return iter(tuple(self._calls.values()))

    @property
    def first(self) -> SpooledCall | None:
        """The call that was kept first."""
        return next(iter(self._calls.values()), None)

    def get(self, proposal: str) -> SpooledCall | None:
        """Return the call that has this proposal."""
        return self._calls.get(proposal)

    def named(self, name: CallName) -> SpooledCall | None:
        """Return the call of this name."""
        return self._by_name.get(name)

    def take(self, offset: int, entry: SpoolEntry, name: CallName | None, outcome_id: str | None) -> None:
        """Take in the entry that stands at ``offset``.

        :param name: of the proposal in it, ``outcome_id`` of the outcome; None: it has none
        """
        call = self._calls.get(entry.proposal)
        if entry.written:
            self._forget(entry.proposal)
            return
        if call is None:
            if name is None:
                # What it belongs to is in the log by now, or damaged.
                return
            call = SpooledCall(self.file, entry.proposal, name, offset, entry.at)
            self._calls[call.proposal] = call
            # A repetition that was cancelled before it was told of the call must not hide it.
            self._by_name.setdefault(name, call)
        if outcome_id is not None:
            call.ending, call.outcome_id = offset, outcome_id

    def _forget(self, proposal: str) -> None:
        call = self._calls.pop(proposal, None)
        if call is not None and self._by_name.get(call.name) is call:
            del self._by_name[call.name]

    def read(self, records: Iterable[SpoolRecord], codec: Codec) -> None:
        """Take in what another process wrote; what this release cannot read is kept for people.

        :raises OSError: if the file cannot be read
        """
        for record in records:
            try:
                entry = decode_entry(record.content)
                proposed, outcome = proposed_in(entry, codec), told_in(entry, codec)
            except msgspec.DecodeError as error:
                _log.error("%s, byte %d: %s; it is left in the file", self.file.path, record.offset, error)
                self.file.damaged += 1
                continue
            name = None if proposed is None else name_of(proposed)
            self.take(record.offset, entry, name, None if outcome is None else outcome.id)
