"""Many processes make the same calls for several tenants while some are killed: nothing is lost, nothing twice."""

from __future__ import annotations

from collections import Counter
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from engine import CallContext, Engine
from events import Refused
from projections.listing import Wanted, list_attempts
from tests.crash.swarm import TENANTS, settings_in
from tests.crash.swarm_proof import aftermath, unanswered, wrongs
from tests.crash.swarm_run import Size, Swarm, tickets_for
from tests.crash.swarm_tools import ROWS, TOOLS

__all__ = ()

pytestmark = pytest.mark.anyio

STILL_OPEN = Wanted(user_id=None, every_tenant=True, status="proposed")

SHORT = Size(workers=2, approvers=1, calls=200, kills=2, patience=6.0)
LONG = Size(workers=8, approvers=2, calls=20_000, kills=60)
LESS = Size(workers=8, approvers=2, calls=4_000, kills=30)

ALWAYS = ("Executed", "Failed", "Paused", "Denied", "Approved", "Resumed", "duplicate", "ordinal")
IN_THE_LONG_RUN = ("rejected", "orphaned", "expired", "timeout", "run again")


@pytest.fixture(scope="module")
def anyio_backend() -> Any:
    """One: half of every swarm's processes run on asyncio, half on trio."""
    return "asyncio"


async def swarmed(url: str, folder: Path, size: Size) -> Counter[str]:
    """Run a swarm, bring it to its end, prove what it left, and return how often what came about."""
    with Swarm(url, folder, size) as swarm:
        await anyio.to_thread.run_sync(swarm.feed, tickets_for(size))
        await anyio.to_thread.run_sync(swarm.end_approvers)
        async with Engine.open(url, rows=ROWS, tools=TOOLS, settings=settings_in(folder)) as engine:
            await settled(engine)
            await anyio.to_thread.run_sync(swarm.end_follower, await engine.log.head())
            left = await aftermath(engine, folder, swarm.killed)
            found = [*await wrongs(engine, folder, left), *await unanswered(engine, left)]
            assert found == [], "\n".join(found)
            assert {row.user_id for row in left.rows.values()} == set(TENANTS)
            return left.kinds()


async def settled(engine: Engine) -> None:
    """Reconcile until nothing is left open; what was approved and forgotten is resumed, and so run or denied."""
    with anyio.fail_after(120):
        while True:
            await engine.reconcile()
            left = [row async for row in list_attempts(engine.log, STILL_OPEN)]
            if not left:
                return
            for row in left:
                if row.attempt.phase == "approved":
                    with suppress(Refused):
                        async with aclosing(engine.resume(row.key, CallContext(user_id=row.user_id))) as stream:
                            _ = [event async for event in stream]
            await anyio.sleep(0.5)


@pytest.mark.soak
@pytest.mark.timeout(240)
async def test_a_few_processes(database_url: str, tmp_path: Path) -> None:
    kinds = await swarmed(database_url, tmp_path, SHORT)
    assert [kind for kind in ALWAYS if not kinds[kind]] == []


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("store", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
async def test_many_processes(request: pytest.FixtureRequest, tmp_path: Path, store: str) -> None:
    url = request.getfixturevalue("postgres_url") if store == "postgres" else f"sqlite:///{tmp_path}/journal.db"
    kinds = await swarmed(url, tmp_path, LONG if store == "postgres" else LESS)
    print(*(f"{kind} {count}" for kind, count in sorted(kinds.items())), sep=", ")
    assert [kind for kind in (*ALWAYS, *IN_THE_LONG_RUN) if not kinds[kind]] == []
