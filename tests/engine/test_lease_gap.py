"""When a worker may say of another that it is gone: only once it has held its own lease for long, without a gap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import anyio
import anyio.to_thread
import pytest

from engine import Engine
from engine.lease import Lease, lease_end
from engine.migration import CHAINS
from events import LogUnavailable
from events.postgres import migrate_postgres
from tests.engine.staging import proved, row_of
from tests.engine.stuck_calls import (
    Clock,
    end_lease,
    give_lease,
    hold_long,
    kinds,
    lease_of,
    only,
    staged_call,
    take_lease,
)
from tests.logs import opened
from tests.postgres_server import PostgresServer, postgres_server

__all__ = ()

pytestmark = pytest.mark.anyio


class Flaky:
    """A store whose writes fail while it is away."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.away = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def write(self, statements: Sequence[Any]) -> list[int]:
        if self.away:
            raise LogUnavailable("away")
        written: list[int] = await self._store.write(statements)
        return written


async def beats(lease: Lease, clock: Clock, seconds: int) -> None:
    """Renew as the heartbeat does, three times a period."""
    for _ in range(seconds // 10):
        clock.pass_(10)
        await lease.renew()


async def test_it_takes_one_period(journal_url: str) -> None:
    async with opened(journal_url) as log:
        clock = Clock()
        lease = Lease(log.store, "w", 30, clock)
        await lease.begin()
        assert await lease.assured() == 30
        for left in (20, 10, 0, 0):
            clock.pass_(10)
            assert await lease.assured() == left
        assert "w 30s" in repr(lease)


async def test_a_renewal_that_fails_is_a_gap(journal_url: str) -> None:
    async with opened(journal_url) as log:
        clock, store = Clock(), Flaky(log.store)
        lease = Lease(store, "w", 30, clock)
        await lease.begin()
        await beats(lease, clock, 60)
        assert await lease.assured() == 0
        store.away = True
        with pytest.raises(LogUnavailable):
            await lease.assured()
        with pytest.raises(LogUnavailable):
            await lease.renew()
        store.away = False
        assert await lease.assured() == 30
        await beats(lease, clock, 30)
        assert await lease.assured() == 0


@pytest.mark.parametrize(("silence", "left"), [(14, 0), (16, 30), (40, 30)])
async def test_so_is_a_renewal_that_comes_late(sqlite_url: str, silence: int, left: int) -> None:
    """A database that answered nobody for so long, or a worker that stood still."""
    async with opened(sqlite_url) as log:
        clock = Clock()
        lease = Lease(log.store, "w", 30, clock)
        await lease.begin()
        await beats(lease, clock, 60)
        clock.pass_(silence)
        assert await lease.assured() == left


@pytest.mark.parametrize("way", [end_lease, take_lease])
async def test_so_is_a_lease_that_was_over(journal_url: str, way: Any) -> None:
    """The database's clock jumped, the machine slept, somebody took the row away."""
    async with Engine.open(journal_url) as engine:
        await hold_long(engine)
        assert await lease_of(engine).assured() == 0
        await way(engine, engine.statistics().worker)
        assert await lease_of(engine).assured() == 30
        assert await lease_end(engine.log.store, engine.statistics().worker) is not None


async def test_a_database_that_was_away_makes_nobody_dead(journal_url: str) -> None:
    async with Engine.open(journal_url) as engine:
        clock, store = Clock(), Flaky(engine.log.store)
        lease = Lease(store, engine.statistics().worker, 30, clock)
        engine._runtime.rounds.lease = lease
        await beats(lease, clock, 60)
        # Half a minute long nobody could renew anything: every lease looks over.
        await give_lease(engine, "alive", -1.0)
        await staged_call(engine, "open", "c1", worker="alive")
        await staged_call(engine, "open", "c2", worker="dead")
        store.away = True
        clock.pass_(40)
        with pytest.raises(LogUnavailable):
            await engine.reconcile()
        store.away = False
        assert set(kinds(await engine.reconcile()).values()) == {"held"}
        # The living come back within that time.
        await end_lease(engine, "alive", ago=-30.0)
        await beats(lease, clock, 20)
        assert set(kinds(await engine.reconcile()).values()) == {"held"}
        await beats(lease, clock, 10)
        assert only(await engine.reconcile()).key == "m:c2"
        assert (await row_of(engine)).status == "proposed"
        await proved(engine)


async def test_it_may_go_away_in_the_middle_of_a_round(sqlite_url: str) -> None:
    """Between the reading of a page and its closing: the page cannot be relied on, and is not."""
    async with Engine.open(sqlite_url) as engine:
        await staged_call(engine, "open", "c1", worker="gone")
        clock = await hold_long(engine)
        lease = lease_of(engine)

        class Interrupted:
            def __init__(self) -> None:
                self.asked = 0

            async def assured(self) -> float:
                self.asked += 1
                if self.asked == 2:
                    clock.pass_(25)
                return await lease.assured()

        engine._runtime.rounds.lease = Interrupted()
        report = await engine.reconcile()
        assert (kinds(report), report.steady_in) == ({"m:c1": "held"}, 30)
        assert (await row_of(engine)).status == "proposed"


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """A server of the test's own, to be killed."""
    with postgres_server() as server:
        yield server


@pytest.mark.postgres
async def test_a_server_that_dies_and_is_started_again(own_server: PostgresServer) -> None:
    url = await anyio.to_thread.run_sync(own_server.create_database)
    await migrate_postgres(url, CHAINS)
    async with Engine.open(url) as engine:
        await staged_call(engine, "open", "c1", worker="gone")
        clock = await hold_long(engine)
        await anyio.to_thread.run_sync(own_server.kill)
        clock.pass_(20)
        with pytest.raises(LogUnavailable):
            await engine.reconcile()
        await anyio.to_thread.run_sync(own_server.start)
        with anyio.fail_after(60):
            while True:
                try:
                    report = await engine.reconcile()
                except LogUnavailable:
                    continue
                break
        assert only(report).kind == "held"
        await hold_long(engine, clock)
        assert only(await engine.reconcile()).kind == "orphaned"
        await proved(engine)
