"""How the log is read: SQLAlchemy Core selects, page by page, so that memory stays flat and no connection is held."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

import msgspec
from sqlalchemy import ColumnElement, Select, insert, select, type_coerce, update
from sqlalchemy.types import NullType

from events.codec import Codec
from events.errors import LogUnavailable
from events.keys import tenant_of
from events.records import moment_of
from events.schema import checkpoints, events, payloads, streams
from events.store import AS_STORED, Store
from events.subscription import Subscription
from events.types import Recorded, ToolEvent

__all__ = ("PAGE", "payload_content", "read_log", "read_one_stream", "subscription")

PAGE = 1000
_COLUMNS = (
    events.c.position,
    events.c.key,
    events.c.version,
    # As the driver gives it: a conversion per row would cost more than the rest of the row.
    type_coerce(events.c.recorded_at, NullType()),
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
        for recorded in decoded(log.codec, rows):
            yield recorded
        if len(rows) < PAGE:
            return
        after = rows[-1][0]


def _page(after: int, head: int, tenant: str | None) -> Select[Any]:
    condition: ColumnElement[bool] = (events.c.position > after) & (events.c.position <= head)
    if tenant is not None:
        condition &= events.c.tenant == tenant
    page = select(*_COLUMNS).where(condition).order_by(events.c.position).limit(PAGE)
    return page.execution_options(**{AS_STORED: True})


def decoded(codec: Codec, rows: Sequence[Any]) -> Iterator[Recorded[ToolEvent]]:
    """Yield rows as Recorded, without those whose kind or version this release does not know.

    :raises LogUnavailable: at a row whose text is damaged, after those before it
    """
    for position, key, version, recorded_at, tenant, kind, schema_version, data in rows:
        try:
            event = codec.decode(kind, schema_version, data, position)
            moment = moment_of(recorded_at)
        except (msgspec.DecodeError, ValueError) as error:
            raise LogUnavailable(
                f"the log is damaged at position {position} ({error}); run verify, then restore from a backup"
            ) from error
        if event is not None:
            user_id = tenant_of(tenant)
            yield Recorded(
                position=position, key=key, version=version, recorded_at=moment, user_id=user_id, event=event
            )


def _before_damage(codec: Codec, rows: Sequence[Any]) -> list[Recorded[ToolEvent]]:
    """Return rows as Recorded, up to a damaged one: that is only raised where it is the first, so that none is lost."""
    found: list[Recorded[ToolEvent]] = []
    try:
        found.extend(decoded(codec, rows))
    except LogUnavailable:
        if not found:
            raise
    return found


async def read_one_stream(log: Readable, key: str, tenant: str) -> AsyncIterator[Recorded[ToolEvent]]:
    """Yield one stream's events in order."""
    stream = select(streams.c.stream).where(streams.c.tenant == tenant, streams.c.key == key).scalar_subquery()
    statement = select(*_COLUMNS).where(events.c.stream == stream).order_by(events.c.version)
    for recorded in decoded(log.codec, await log.store.read(statement)):
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
        found = _before_damage(log.codec, rows)
        if found and found[-1].position < rows[-1][0]:
            return found, found[-1].position
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
