"""The worker's lease: there before its first append, kept up by the heartbeat, gone with its engine."""

from __future__ import annotations

import gc
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint
from sqlalchemy import delete, select, update

from engine import Engine, Settings
from engine.lease import Lease, lease_alive
from engine.settings import Limits
from events import LogUnavailable
from events.errors import SchemaMismatch
from events.schema import leases
from tests.engine.staging import call, events_of, staged
from tests.logs import opened, tamper

__all__ = ()

pytestmark = pytest.mark.anyio


async def answer() -> str:
    return "done"


async def expiry_of(store: Any, worker: str) -> datetime | None:
    rows = await store.read(select(leases.c.expires_at).where(leases.c.worker == worker))
    return rows[0][0] if rows else None


async def test_it_is_there_before_the_first_append_and_gone_at_the_end(journal_url: str) -> None:
    async with staged(journal_url, answer) as engine:
        worker = engine.statistics().worker
        assert await engine.log.head() == 0
        assert await lease_alive(engine.log.store, worker)
        expiry = await expiry_of(engine.log.store, worker)
        assert expiry is not None
        left = expiry - datetime.now(UTC)
        assert timedelta(seconds=25) < left < timedelta(seconds=35)
    async with opened(journal_url) as log:
        assert not await lease_alive(log.store, worker)
        assert await log.store.read(select(leases)) == []


async def test_each_engine_has_its_own(journal_url: str) -> None:
    async with staged(journal_url, answer) as one, staged(journal_url, answer) as two:
        workers = {engine.statistics().worker for engine in (one, two)}
        assert {row[0] for row in await one.log.store.read(select(leases.c.worker))} == workers


async def test_the_heartbeat_keeps_it_up(journal_url: str) -> None:
    short = Settings(limits=Limits(lease=0.3))
    async with Engine.open(journal_url, settings=short) as engine:
        worker = engine.statistics().worker
        first = await expiry_of(engine.log.store, worker)
        assert first is not None
        with anyio.fail_after(10):
            while (now := await expiry_of(engine.log.store, worker)) is None or now <= first + timedelta(seconds=0.2):
                await checkpoint()
        assert await lease_alive(engine.log.store, worker)


async def test_a_lease_that_was_taken_away_comes_back(journal_url: str) -> None:
    short = Settings(limits=Limits(lease=0.3))
    async with Engine.open(journal_url, settings=short) as engine:
        worker = engine.statistics().worker
        await engine.log.store.write([delete(leases)])
        with anyio.fail_after(10):
            while not await lease_alive(engine.log.store, worker):
                await checkpoint()


async def test_without_heartbeat_it_runs_out_by_itself(journal_url: str) -> None:
    async with opened(journal_url) as log:
        lease = Lease(log.store, "w", 30)
        await lease.begin()
        assert await lease_alive(log.store, "w")
        # Half a minute later, by the clock that all workers share.
        past = datetime.now(UTC) - timedelta(seconds=1)
        await log.store.write([update(leases).values(expires_at=past)])
        assert not await lease_alive(log.store, "w")
        assert await lease.renew()
        assert await lease_alive(log.store, "w")
        await lease.end()
        assert not await lease.renew()
        assert not await lease_alive(log.store, "w")
        assert not await lease_alive(log.store, "somebody else")


async def test_an_engine_whose_opening_fails_leaves_nothing_open(journal_url: str) -> None:
    class Odd(Exception):
        pass

    async def body() -> None:
        async with Engine.open(journal_url):
            raise Odd("from the body")

    # What ends the body comes out as it is, in no group.
    with pytest.raises(Odd, match="from the body"):
        await body()
    async with opened(journal_url) as log:
        assert await log.store.read(select(leases)) == []


async def test_an_engine_that_is_cancelled_gives_its_lease_up(journal_url: str) -> None:
    with anyio.CancelScope() as scope:
        async with staged(journal_url, answer) as engine:
            await events_of(engine, call())
            scope.cancel()
            await checkpoint()
    assert scope.cancelled_caught
    async with opened(journal_url) as log:
        assert await log.store.read(select(leases)) == []


async def test_an_opening_that_fails_half_way_leaves_nothing_open(journal_url: str) -> None:
    """The log is open when the lease cannot be written: it is closed again (an open connection would warn)."""
    async with opened(journal_url) as log:
        await tamper(log, f"DROP TABLE {leases.name}")
    for _ in range(2):
        with pytest.raises((LogUnavailable, SchemaMismatch)):
            async with Engine.open(journal_url):
                raise AssertionError("it cannot be opened")
        gc.collect()
