"""How stuck calls are looked for: through an index, a page at a time, however many calls there are."""

from __future__ import annotations

import re
import tracemalloc
from typing import Any

import pytest
from sqlalchemy import Connection, Select, Table, text
from sqlalchemy.dialects import postgresql, sqlite

from engine import Engine, Limits, Settings
from engine.suspects import PAGE, waiting_for_approval
from events import LogUnavailable, Paused
from events.schema import events as event_table
from events.store import Store
from projections.schema import attempts
from tests.engine.staging import call, outcome_of, staged_engine, tool_of
from tests.engine.stuck_calls import DAY, give_lease, hold_long, later, staged_call

__all__ = ()

pytestmark = pytest.mark.anyio

_WHOLE = r"SCAN tool_call_\w+(?! USING)\b|Seq Scan on tool_call|TEMP B-TREE|Sort "
_COPIES = {
    "sqlite": "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {count}) ",
    "postgresql": "WITH n AS (SELECT generate_series(1, {count}) AS n) ",
}


async def multiply(engine: Engine, key: str, count: int) -> None:
    """Copy a call so many times, its row and its events, by SQL alone."""
    await _copy(engine, attempts, key, count, {"stream", "position"})
    await _copy(engine, event_table, key, count, {"stream", "position"})


async def _copy(engine: Engine, table: Table, key: str, count: int, numbered: set[str]) -> None:
    made = {name: f"t.{name} + n * 1000" for name in numbered} | {"key": "t.key || '-' || n", "id": "t.id || n"}
    names = [column.name for column in table.c]
    chosen = ", ".join(made.get(name, f"t.{name}") for name in names)
    begin = _COPIES[engine.log.store.dialect].format(count=count)
    insert = f"INSERT INTO {table.name} ({', '.join(names)}) "
    source = f"SELECT {chosen} FROM {table.name} t, n WHERE t.key = '{key}'"
    whole = begin + insert + source if engine.log.store.dialect == "sqlite" else insert + begin + source
    await engine.log.store.write([text(whole)])


async def plan_of(store: Store, statement: Select[Any]) -> str:
    """Return how the database carries a statement out, large as the table may grow: a few rows it would rather sort."""
    dialect = sqlite.dialect() if store.dialect == "sqlite" else postgresql.dialect()  # type: ignore[no-untyped-call]
    compiled = statement.compile(dialect=dialect, compile_kwargs={"literal_binds": True})

    def explain(connection: Connection) -> str:
        if store.dialect == "sqlite":
            rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {compiled}").all()
        else:
            connection.exec_driver_sql("SET LOCAL enable_sort = off")
            connection.exec_driver_sql("SET LOCAL enable_bitmapscan = off")
            rows = connection.exec_driver_sql(f"EXPLAIN {compiled}").all()
        return "\n".join(str(column) for row in rows for column in row)

    return await store.transact(explain)


class Noting:
    """A store that notes what is read of the table of calls."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.statements: list[Select[Any]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def read(self, statement: Any) -> Any:
        if isinstance(statement, Select) and "tool_call_attempts" in str(statement):
            self.statements.append(statement)
        return await self._store.read(statement)


async def test_every_statement_goes_by_an_index(journal_url: str) -> None:
    """Of a round, and of what is measured after it."""
    async with Engine.open(journal_url, settings=Settings(reconcile_interval=None)) as engine:
        for state in ("open", "claimed", "requires_input", "awaiting_approval", "approved", "executed", "confirmed"):
            await staged_call(engine, state, state, worker="gone")
            await multiply(engine, f"m:{state}", 20_000 if state == "confirmed" else 2000)
        await engine.log.store.write([text("ANALYZE")])
        later(engine, 8 * DAY)
        store = engine.log.store
        noting = Noting(store)
        engine.log.store = noting
        await engine.reconcile(dry_run=True)
        await waiting_for_approval(noting)
        engine.log.store = store
        plans = [await plan_of(store, statement) for statement in noting.statements]
        assert len(plans) > 30
        for plan in plans:
            assert re.search("tool_call_attempts_(waiting|unconfirmed)", plan), plan
            # Neither the whole table, nor a range of it put in order: a page costs a page.
            assert not re.search(_WHOLE, plan), plan


@pytest.mark.soak
async def test_many_calls_are_looked_through_in_flat_memory(journal_url: str) -> None:
    count = 20 * PAGE
    limits = Limits(report_after=0.0)
    async with Engine.open(journal_url, settings=Settings(limits=limits, reconcile_interval=None)) as engine:
        await hold_long(engine)
        await give_lease(engine, "alive")
        for state in ("open", "claimed", "awaiting_approval", "requires_input", "executed"):
            key = await staged_call(engine, state, state, worker="gone")
            await multiply(engine, key, count)
        await staged_call(engine, "open", "living", worker="alive")
        await multiply(engine, "m:living", count)
        later(engine, 8 * DAY)
        await engine.reconcile(dry_run=True)
        tracemalloc.start()
        report = await engine.reconcile(dry_run=True)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        counts = report.counts
        assert (counts.orphaned, counts.expired, counts.timed_out) == (2 * (count + 1), count + 1, count + 1)
        assert counts.unconfirmed == count + 1
        assert len(report.calls) == 400
        assert peak < 5_000_000


async def test_a_damaged_row_is_an_error_that_says_what_to_do(sqlite_url: str) -> None:
    quick = Settings(limits=Limits(decide_within=0.0), reconcile_interval=None)
    async with staged_engine(sqlite_url, tool_of(int, metadata={"require_approval": True}), settings=quick) as engine:
        assert isinstance(await outcome_of(engine, call()), Paused)
        await engine.log.store.write([text("UPDATE tool_call_attempts SET updated_at = 'yesterday'")])
        with pytest.raises(LogUnavailable, match=r"damaged .*run verify"):
            await engine.reconcile()
