"""What a database must do for the log: one protocol, and the typed shapes that cross it.

``EventLog`` and its writer speak to this; ``sqlite.py``, ``postgres.py`` and ``null.py`` implement it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final, Protocol, TypeAlias, TypeVar, runtime_checkable

import msgspec

from events.errors import JournalError

__all__ = (
    "AS_STORED",
    "Appended",
    "Guard",
    "InlineProjection",
    "Outcome",
    "Payload",
    "Reachable",
    "Refusal",
    "StateChange",
    "Store",
    "StoredEvent",
    "StreamAppend",
    "Unit",
    "Verdict",
)

AS_STORED: Final = "calljournal_as_stored"
"""An execution option of a select whose columns are all read as they are stored: its rows may be tuples without names,
which a long log is read by a fifth faster with."""

T = TypeVar("T")


class StoredEvent(msgspec.Struct, frozen=True, gc=False):
    """One event ready to be stored: its client-made id, its kind, its schema version and its JSON text.

    ``result`` is the JSON text of an Executed's result as stored, so that the state row need not encode it again.
    """

    id: str
    kind: str
    schema_version: int
    data: str
    result: str | None = None


class Payload(msgspec.Struct, frozen=True, gc=False):
    """A result too long for its event: content-addressed text, stored once per tenant and digest."""

    digest: str
    length: int
    content: str


class Guard(msgspec.Struct, frozen=True, gc=False):
    """The SQL guard of one append, generated from the transition table.

    :ivar statuses: the statuses the row may have, space separated, e.g. ``"proposed"``
    :ivar phases: ``gate`` or ``gate:pause_type`` values the row may have, space separated; None: any
    :ivar not_late: the row's ``late`` must not be set
    :ivar idempotent: the row's ``idempotent`` must be set
    """

    statuses: str
    phases: str | None
    not_late: bool
    idempotent: bool


class StateChange(msgspec.Struct, frozen=True, gc=False):
    """What an append does to the inline projection's row.

    ``guard`` None: the row is made, and ``values`` follow the projection's ``insert_columns``. Otherwise the row is
    changed if the guard holds, and ``values`` follow ``update_columns`` (None: that column stays as it is).
    """

    guard: Guard | None
    values: tuple[Any, ...]


class StreamAppend(msgspec.Struct, frozen=True, gc=False):
    """Events for one stream, all or none, with the state change that goes with them.

    :ivar tenant: the encoded tenant column
    :ivar expected_version: the stream's version before; 0: the stream must not exist
    :ivar dead_worker: if set, this worker's lease must be over at the moment of the append
    :ivar check_repeat: an event of this kind may legally occur again, so the store looks for its id in the stream
    """

    tenant: str
    key: str
    expected_version: int
    events: tuple[StoredEvent, ...]
    change: StateChange
    payloads: tuple[Payload, ...] = ()
    dead_worker: str | None = None
    check_repeat: bool = False


Unit: TypeAlias = tuple[StreamAppend, ...]
"""Appends that are accepted or refused together; nearly always one."""


class Appended(msgspec.Struct, frozen=True, gc=False):
    """An accepted append: the positions of its events in order, and when they were recorded (UTC)."""

    positions: tuple[int, ...]
    recorded_at: datetime


class Refusal(msgspec.Struct, frozen=True):
    """A refused append and what was found instead; all None where the tenant has no such stream.

    ``lease_alive``: the append asked for a dead worker, and its lease is not over.
    """

    version: int | None = None
    status: str | None = None
    gate: str | None = None
    pause_type: str | None = None
    late: bool = False
    lease_alive: bool = False


Verdict: TypeAlias = tuple[Appended | Refusal, ...]
"""One entry per append of a unit. A repetition of events that are in the log already is Appended, as it was then."""

Outcome: TypeAlias = Verdict | JournalError
"""How one unit of a batch ended: its verdict, or why it alone could not be written: Refused where a database cannot
store what it holds, LogUnavailable where e.g. another transaction keeps its row locked."""


class InlineProjection(Protocol):
    """State that is kept in the same transaction as the log; the writer knows nothing else of it.

    :ivar insert_columns: columns given when a stream begins, in the order of ``StateChange.values``
    :ivar update_columns: columns that later events may change, likewise
    :ivar table: the table's name; it has the columns stream, tenant, key, version, position, status, gate,
        pause_type, late, idempotent, updated_at besides
    :ivar postgres_function: name of the append function that knows this table
    """

    @property
    def table(self) -> str: ...
    @property
    def insert_columns(self) -> tuple[str, ...]: ...
    @property
    def update_columns(self) -> tuple[str, ...]: ...
    @property
    def postgres_function(self) -> str: ...

    def change(self, events: Sequence[Any], texts: Sequence[StoredEvent]) -> StateChange:
        """Return the state change of one append's events (never empty); pure."""
        ...


@runtime_checkable
class Store(Protocol):
    """A database that holds one log."""

    @property
    def dialect(self) -> str:
        """``sqlite``, ``postgresql`` or ``null``."""
        ...

    @property
    def epoch(self) -> int:
        """The chains' epoch (see ``migration.Chain``) as the newest commit of this store saw it; 0 before the first.

        Whatever raised it before an append was begun is seen once that append has returned.
        """
        ...

    async def commit(self, units: Sequence[Unit]) -> Sequence[Outcome]:
        """Write the units in one transaction, each accepted or refused for itself; no stream occurs twice.

        Durable (synced to disk) on return. A refused unit leaves no trace and never fails its neighbours, nor does one
        that cannot be stored.

        :raises LogUnavailable: if nothing was written, or if that cannot be known (then try the same units again:
            what had been written is recognised by its ids)
        """
        ...

    async def read(self, statement: Any) -> Sequence[Any]:
        """Run one SQLAlchemy Core select and return all its rows (tuples); see :data:`AS_STORED`.

        :raises LogUnavailable: if the database cannot be read
        """
        ...

    async def write(self, statements: Sequence[Any]) -> list[int]:
        """Run SQLAlchemy Core statements in one transaction of the writer and return how many rows each touched.

        :raises LogUnavailable: if they were not written
        """
        ...

    async def transact(self, work: Callable[[Any], T]) -> T:
        """Run ``work(connection)`` in one transaction of the writer and return what it returns; it raises: rolled back.

        ``connection`` is SQLAlchemy's, sync; ``work`` may run in another thread, holds up every append meanwhile
        (SQLite), and must not keep the connection.

        :raises LogUnavailable: if the database failed
        """
        ...

    async def head(self) -> int:
        """Return the highest position below which nothing can appear any more; 0 for an empty log."""
        ...

    async def wait(self, after: int, timeout: float) -> None:
        """Return soon after a position beyond ``after`` may be readable, at the latest after ``timeout`` seconds."""
        ...

    async def aclose(self) -> None:
        """Close every connection; again: nothing."""
        ...


@runtime_checkable
class Reachable(Protocol):
    """A store that another process may be able to open, too."""

    @property
    def url(self) -> str | None:
        """The URL to open it with; None: no other process can. May hold a password: never show it."""
        ...
