"""Tamper evidence: SHA-256 chained over the records in position order, one seal a range, off the write path (DESIGN 4).

A seal covers every position from ``first`` to ``last``, holes included, and the seal before it; ranges leave nothing
out. What was changed, removed, or slipped into a hole afterwards no longer gives the seal's digest. Whoever can rewrite
the whole database can also rewrite the chain: keep the newest digest elsewhere to notice that.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from sqlalchemy import BigInteger, Text, literal, select
from sqlalchemy.dialects import postgresql, sqlite

from events.log import EventLog
from events.records import Pager, Record, moment_text, records_after
from events.schema import Utc, seals
from events.store import Store

__all__ = ("GENESIS", "NO_END", "CheckedSeal", "Seal", "check_seals", "last_seal", "seal")

GENESIS = "0" * 64
"""What stands for the digest before the first seal."""

NO_END = 2**63 - 1
"""A position that no log reaches."""

_RANGE = 1000


class Seal(msgspec.Struct, frozen=True):
    """One link of the chain: the positions ``first`` to ``last`` (``count`` records) and their digest, in hex."""

    last: int
    first: int
    count: int
    previous: str
    digest: str


class CheckedSeal(msgspec.Struct, frozen=True):
    """A seal, and how the log fails to match it; None: it is as it was."""

    seal: Seal
    problem: str | None


async def seal(log: EventLog) -> int:
    """Seal what is settled and not sealed yet, and return how many records this call sealed.

    Safe to call from many processes at once: each range is sealed once, and who comes second carries on behind it. Off
    the write path: it reads, and writes one row per thousand records.

    :raises LogUnavailable: if the log cannot be read or written
    """
    head = await log.head()
    sealed = 0
    before = await last_seal(log.store)
    while (after := before.last if before else 0) < head:
        link = await _next_link(log.store, before, after, head)
        if link is None:
            break
        if await log.store.write([_insert(link, log.store.dialect)]) == [1]:
            sealed += link.count
            before = link
        else:
            before = await last_seal(log.store)
    return sealed


async def last_seal(store: Store, upto: int = NO_END) -> Seal | None:
    """Return the newest seal that ends at ``upto`` or before."""
    rows = await store.read(_chain().where(seals.c.last <= upto).order_by(seals.c.last.desc()).limit(1))
    return Seal(*rows[0]) if rows else None


async def _next_link(store: Store, before: Seal | None, after: int, head: int) -> Seal | None:
    chain = _Digest(before.digest if before else GENESIS)
    pager = Pager()
    last = after
    while chain.count < _RANGE:
        pager.size = min(pager.size, _RANGE - chain.count)
        records = await records_after(store, last, head, pager)
        if not records:
            break
        chain.add(records)
        last = records[-1][0]
    return chain.seal(after + 1, last) if chain.count else None


def _chain() -> Any:
    return select(seals.c.last, seals.c.first, seals.c.count, seals.c.previous, seals.c.digest)


def _insert(link: Seal, dialect: str) -> Any:
    insert = sqlite.insert if dialect == "sqlite" else postgresql.insert
    values = select(
        literal(link.last, BigInteger),
        literal(link.first, BigInteger),
        literal(link.count, BigInteger),
        literal(link.previous, Text),
        literal(link.digest, Text),
        literal(datetime.now(UTC), Utc),
    )
    # SQLite's triggers refuse a second seal before a conflict clause could speak, so look first: there is one writer.
    there = select(seals.c.last).where(seals.c.last >= link.first).exists()
    columns = ("last", "first", "count", "previous", "digest", "sealed_at")
    return insert(seals).from_select(columns, values.where(~there)).on_conflict_do_nothing()


class _Digest:
    """SHA-256 over the digest before and the records of one range."""

    def __init__(self, previous: str) -> None:
        self.previous = previous
        self.count = 0
        self._state = hashlib.sha256(previous.encode())

    def add(self, records: Sequence[Record]) -> None:
        """Take records in: their fields, each ended by NUL, which none of them can hold, so no two lists are alike."""
        parts: list[bytes] = []
        for position, _, version, tenant, key, event_id, kind, schema_version, recorded_at, data in records:
            moment = recorded_at if isinstance(recorded_at, str) else moment_text(recorded_at)
            head = f"{position}\0{version}\0{schema_version}\0{tenant}\0{key}\0{event_id}\0{kind}\0{moment}\0"
            parts += (head.encode(), data if isinstance(data, bytes) else data.encode(), b"\0")
        self._state.update(b"".join(parts))
        self.count += len(records)

    def seal(self, first: int, last: int) -> Seal:
        """Return the seal of what was taken in."""
        state = self._state.copy()
        state.update(f"{first} {last} {self.count}".encode())
        return Seal(last, first, self.count, self.previous, state.hexdigest())


async def check_seals(log: EventLog, after: int = 0, upto: int = NO_END) -> AsyncGenerator[CheckedSeal, None]:
    """Compute the chain again and yield each seal with what is wrong with it. Memory stays flat.

    :param after: begin behind the last seal up to there
    :param upto: end with the last seal up to there
    :raises LogUnavailable: if the log cannot be read
    """
    before = await last_seal(log.store, after)
    pager = Pager()
    while True:
        some = _chain().where(seals.c.last > after, seals.c.last <= upto).order_by(seals.c.last).limit(256)
        page = await log.store.read(some)
        if not page:
            return
        for link in [Seal(*row) for row in page]:
            yield CheckedSeal(link, await _check_link(log.store, before, link, pager))
            before, after = link, link.last


async def _check_link(store: Store, before: Seal | None, link: Seal, pager: Pager) -> str | None:
    previous, first = (before.digest, before.last + 1) if before else (GENESIS, 1)
    if link.previous != previous or link.first != first:
        return "the seal does not follow the one before it: a seal is missing or was changed"
    chain = _Digest(previous)
    last = first - 1
    while last < link.last and (records := await records_after(store, last, link.last, pager)):
        chain.add(records)
        last = records[-1][0]
    if chain.count != link.count:
        return f"{link.count} records were sealed in positions {first} to {link.last}, {chain.count} are there"
    if chain.seal(first, link.last).digest != link.digest:
        return f"positions {first} to {link.last} no longer give their seal: a record was changed"
    return None
