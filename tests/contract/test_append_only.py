"""The database itself refuses to change what is recorded."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import text

from events import EventLog, Executed, JournalError
from events.seal import seal
from tests.events.appends import follow, proposed

__all__ = ()

pytestmark = pytest.mark.anyio

COLUMNS = {
    "tool_call_events": "data",
    "tool_call_streams": "key",
    "tool_call_payloads": "content",
    "tool_call_seals": "digest",
}


@pytest.fixture(scope="module")
def anyio_backend() -> Any:
    """The triggers live in the database: one event loop is enough."""
    return "asyncio"


@pytest.fixture
async def full(log: EventLog) -> EventLog:
    """A log with a row in every one of its tables."""
    first = proposed("c1")
    await log.append(first.key, [first, follow(Executed, first, result="x" * 401_000)], 0, "u")
    await seal(log)
    return log


async def contents(log: EventLog, table: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in await log.store.read(text(f"SELECT * FROM {table}"))]


def attacks(table: str, dialect: str) -> list[str]:
    column = COLUMNS[table]
    upsert = f"INSERT INTO {table} SELECT * FROM {table} WHERE true ON CONFLICT"
    if dialect == "sqlite":
        return [
            f"UPDATE {table} SET {column} = 'x'",
            f"DELETE FROM {table}",
            f"DELETE FROM {table} WHERE true",
            f"INSERT OR REPLACE INTO {table} SELECT * FROM {table}",
            f"{upsert} DO UPDATE SET {column} = 'x'",
        ]
    return [
        f"UPDATE {table} SET {column} = 'x'",
        f"DELETE FROM {table}",
        f"TRUNCATE {table}",
        f"INSERT INTO {table} SELECT * FROM {table}",
        f"{upsert} ON CONSTRAINT {table}_pkey DO UPDATE SET {column} = 'x'",
    ]


@pytest.mark.parametrize("table", COLUMNS)
async def test_a_recorded_row_cannot_be_changed_or_removed(full: EventLog, table: str) -> None:
    before = await contents(full, table)
    assert before
    for statement in attacks(table, full.store.dialect):
        with pytest.raises(JournalError):
            await full.store.write([text(statement)])
        assert await contents(full, table) == before


@pytest.mark.parametrize(
    ("position", "version"), [("position", "99"), ("position + 7", "version")], ids=["position", "stream and version"]
)
async def test_no_record_takes_the_place_of_another(full: EventLog, position: str, version: str) -> None:
    before = await contents(full, "tool_call_events")
    replace = "INSERT OR REPLACE" if full.store.dialect == "sqlite" else "INSERT"
    statement = (
        f"{replace} INTO tool_call_events SELECT {position}, stream, {version}, tenant, key, 'other', type, "
        "schema_version, recorded_at, data FROM tool_call_events WHERE version = 1"
    )
    with pytest.raises(JournalError):
        await full.store.write([text(statement)])
    assert await contents(full, "tool_call_events") == before
