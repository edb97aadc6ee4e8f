"""How the log is read: SQLAlchemy Core selects, page by page, so that memory stays flat and no connection is held."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

import msgspec
from sqlalchemy import ColumnElement, Select, insert, select, update

from events.codec import Codec
from events.errors import LogUnavailable
from events.keys import tenant_of
from events.schema import checkpoints, events, payloads, streams
from events.store import Store
from events.subscription import Subscription
from events.types import Recorded, ToolEvent

__all__ = ("PAGE", "payload_content", "read_log", "read_one_stream", "subscription")

PAGE = 2000
_COLUMNS = (
    events.c.position,
    events.c.key,
    events.c.version,
    events.c.recorded_at,
    events.c.tenant,
    events.c.type,
    events.c.schema_version,
    events.c.data,
)


class Readable(Protocol):
    """What reading needs of a log."""

    store: Store
    codec: Codec


async def read_log(log: Readable, after: int, tenant: str | None) -> AsyncIterator[Recorded[ToolEvent]]:
    """Yield the events beyond ``after`` up to the head at the beginning; ``tenant`` None: every tenant's."""
    # Head first, rows in a second statement: the other way round misses what commits in between.
    head = await log.store.head()
    while after < head:
        rows = await log.store.read(_page(after, head, tenant))
        for row in rows:
            recorded = decoded(log.codec, row)
            if recorded is not None:
                yield recorded
        if len(rows) < PAGE:
            return
        after = rows[-1][0]


def _page(after: int, head: int, tenant: str | None) -> Select[Any]:
    condition: ColumnElement[bool] = (events.c.position > after) & (events.c.position <= head)
    if tenant is not None:
        condition &= events.c.tenant == tenant
    return select(*_COLUMNS).where(condition).order_by(events.c.position).limit(PAGE)


def decoded(codec: Codec, row: Any) -> Recorded[ToolEvent] | None:
    """Return a row as Recorded; None where this release does not know its kind or version.

    :raises LogUnavailable: if the row's text is damaged
    """
    position, key, version, recorded_at, tenant, kind, schema_version, data = row
    try:
        event = codec.decode(kind, schema_version, data, position)
    except msgspec.DecodeError as error:
        raise LogUnavailable(
            f"the log is damaged at position {position} ({error}); run verify, then restore from a backup"
        ) from error
    if event is None:
        return None
    return Recorded(
        position=position, key=key, version=version, recorded_at=recorded_at, user_id=tenant_of(tenant), event=event
    )


async def read_one_stream(log: Readable, key: str, tenant: str) -> AsyncIterator[Recorded[ToolEvent]]:
    """Yield one stream's events in order."""
    stream = select(streams.c.stream).where(streams.c.tenant == tenant, streams.c.key == key).scalar_subquery()
    statement = select(*_COLUMNS).where(events.c.stream == stream).order_by(events.c.version)
    for row in await log.store.read(statement):
        recorded = decoded(log.codec, row)
        if recorded is not None:
            yield recorded


async def payload_content(log: Readable, digest: str, tenant: str) -> str | None:
    """Return a payload's text, or None where the tenant has none of this digest."""
    statement = select(payloads.c.content).where(payloads.c.tenant == tenant, payloads.c.digest == digest)
    rows = await log.store.read(statement)
    return str(rows[0][0]) if rows else None


def subscription(log: Readable, name: str | None, after: int) -> Subscription:
    """Return a subscription over the log's pages."""

    async def page(position: int) -> tuple[Sequence[Recorded[ToolEvent]], int]:
        head = await log.store.head()
        if head <= position:
            return (), position
        rows = await log.store.read(_page(position, head, None))
        found = [recorded for row in rows if (recorded := decoded(log.codec, row)) is not None]
        return found, rows[-1][0] if len(rows) == PAGE else head

    async def load(checkpoint: str) -> int | None:
        rows = await log.store.read(select(checkpoints.c.position).where(checkpoints.c.name == checkpoint))
        return int(rows[0][0]) if rows else None

    async def save(checkpoint: str, position: int) -> None:
        await _save_checkpoint(log.store, checkpoint, position)

    return Subscription(name, after, page, log.store.wait, load, save)


async def _save_checkpoint(store: Store, name: str, position: int) -> None:
    now = datetime.now(UTC)
    known = select(checkpoints.c.name).where(checkpoints.c.name == name)
    if await store.read(known):
        # Never backwards: a slower twin of the same name must not undo what the faster one has dealt with.
        behind = (checkpoints.c.name == name) & (checkpoints.c.position < position)
        await store.write([update(checkpoints).where(behind).values(position=position, updated_at=now)])
        return
    values = {"name": name, "position": position, "updated_at": now}
    await store.write([insert(checkpoints).values(values)])
