"""Ten thousand notes, files and to-do items: every action goes by an index, in few statements.

How long that takes, ``python -m benchmarks.tools`` says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from sqlalchemy import text
from sqlalchemy.dialects import postgresql, sqlite

from engine import Tool
from engine.contract import Scope
from engine.loading import actions_metadata
from engine.tool_sql import Sql
from engine.tools.memory import Memory
from engine.tools.notes import Notes
from engine.tools.todo_list import TodoList
from engine.toolstore import BoundStore
from events.store import Store
from tests.engine.tools.filling import fill, path_of, title_of
from tests.engine.tools.keeping import bound, context_for, opened

pytestmark = pytest.mark.anyio


class Watched(BoundStore):
    """A user's way to the database that notes what goes over it."""

    def __init__(self, store: Store, way: BoundStore) -> None:
        super().__init__(store, way.tenant, way.tool_id)
        self.reads: list[Any] = []
        self.writes: list[Any] = []
        self.transactions = 0

    async def read(self, statement: Any) -> Sequence[Any]:
        self.reads.append(statement)
        return await super().read(statement)

    async def write(self, *statements: Any) -> list[int]:
        self.writes += statements
        self.transactions += 1
        return await super().write(*statements)


class Cost(msgspec.Struct, frozen=True):
    """At most so many reads, each by itself, and statements in one transaction."""

    reads: int
    writes: int = 0


N, P = title_of, path_of
COSTS: dict[type[Tool], dict[str, tuple[dict[str, Any], Cost]]] = {
    Notes: {
        "note_view": ({"title": N(4711)}, Cost(1)),
        "note_list": ({"after": N(4711)}, Cost(1)),
        "note_search": ({"query": "NUMBER 04711"}, Cost(3)),
        "note_history": ({"title": N(4711)}, Cost(1)),
        "note_overwrite": ({"title": N(4711), "text": "x"}, Cost(1, 6)),
        "note_append": ({"title": N(4712), "text": "x"}, Cost(1, 6)),
        "note_str_replace": ({"title": N(4713), "old_str": "This", "new_str": "That"}, Cost(1, 6)),
        "note_insert": ({"title": N(4714), "line_number": 1, "text": "x"}, Cost(1, 6)),
        "note_undo": ({"title": N(4711)}, Cost(2, 6)),
        "note_delete": ({"title": N(4711)}, Cost(1, 3)),
    },
    Memory: {
        "memory_view": ({"path": "/", "after": P(4711)}, Cost(1)),
        "memory_search": ({"query": "NUMBER 04711"}, Cost(3)),
        "memory_history": ({"path": P(4711)}, Cost(1)),
        "memory_create": ({"path": "/d11/new", "file_text": "x"}, Cost(3, 5)),
        "memory_str_replace": ({"path": P(4713), "old_str": "This", "new_str": "That"}, Cost(1, 5)),
        "memory_insert": ({"path": P(4714), "insert_line": 1, "insert_text": "x"}, Cost(1, 5)),
        "memory_delete": ({"path": "/d11/"}, Cost(2, 3)),
        "memory_rename": ({"old_path": "/d13", "new_path": "/e/new"}, Cost(6, 6)),
        "memory_restore": ({"path": "/d11/"}, Cost(5, 3)),
    },
    TodoList: {
        "todo_list": ({"after": 4711}, Cost(1)),
        "todo_get": ({"todo_id": 4711}, Cost(2)),
        "todo_history": ({"todo_id": 4711}, Cost(1)),
        "todo_create": ({"title": "x", "parent": 4711}, Cost(2, 3)),
        "todo_update": ({"todo_id": 4721, "title": "x"}, Cost(2, 4)),
        "todo_complete": ({"todo_id": 4721}, Cost(2, 4)),
        "todo_reopen": ({"todo_id": 4721}, Cost(2, 4)),
        "todo_delete": ({"todo_id": 4711, "recursive": True}, Cost(3, 4)),
    },
}


@pytest.mark.parametrize("kind", COSTS, ids=lambda kind: kind.name)
async def test_every_action_goes_by_an_index_in_few_statements(journal_url: str, kind: type[Tool]) -> None:
    async with opened(journal_url) as store:
        await fill(store, "ada", kind.name)
        await fill(store, "bob", kind.name, many=1_000)
        await store.transact(lambda connection: connection.exec_driver_sql("ANALYZE") and None)
        tool = kind({}, Scope(user_id="ada", owner="ada", tool_id="t1"))
        assert list(COSTS[kind]) == [entry["name"] for entry in await actions_metadata(kind)]
        for action, (arguments, cost) in COSTS[kind].items():
            way = Watched(store, bound(store))
            said = await tool.execute_action(action, context_for(way), **arguments)
            assert isinstance(said, str), (action, said)
            assert len(said) < 40_000
            assert (len(way.reads), len(way.writes)) <= (cost.reads, cost.writes), action
            assert len(way.reads) <= cost.reads, action
            assert len(way.writes) <= cost.writes, action
            assert way.transactions <= 1
            for statement in (*way.reads, *way.writes):
                steps = await plan_of(store, statement)
                assert [step for step in steps if is_scan(step)] == [], (action, str(statement), steps)


async def plan_of(store: Store, statement: Any) -> list[str]:
    """Return the steps of a statement's plan."""
    if store.dialect == "sqlite":
        compiled = statement.compile(dialect=sqlite.dialect(), compile_kwargs={"render_postcompile": True})

        def explained(connection: Any) -> list[str]:
            values = (None,) * len(compiled.positiontup)
            rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {compiled}", values).fetchall()
            return [row[3] for row in rows]

        return await store.transact(explained)
    whole = statement.compile(dialect=postgresql.dialect(), compile_kwargs={"literal_binds": True})  # type: ignore[no-untyped-call]

    def planned(connection: Any) -> list[str]:
        # What it would do with a table too large to be read through.
        connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
        rows = connection.execute(text(f"EXPLAIN {whole}".replace(":", "\\:").replace("%%", "%"))).fetchall()
        return [row[0] for row in rows]

    return await store.transact(planned)


def is_scan(step: str) -> bool:
    """Tell whether a step reads a table through, or an index without the tenant."""
    if "Seq Scan" in step:
        return True
    if step.startswith("SCAN "):
        # What a subquery found, and a list of keys.
        return step.split(" ")[1] not in ("CONSTANT", "below", "gone", "json_each")
    return step.startswith("SEARCH ") and "tenant=?" not in step


async def test_a_statement_that_goes_by_no_index_is_noticed(journal_url: str) -> None:
    async with opened(journal_url) as store:
        await fill(store, "ada", "memory", many=1_000)
        for condition in ("content = :content", "tenant >= '' AND path = :path", "lower(path) = :path"):
            statement = Sql(f"SELECT size FROM memory_files WHERE {condition}")
            steps = await plan_of(store, statement.bind(bound(store), **{condition.rpartition(":")[2]: "x"}))
            # Postgres may read an index through instead, which says no more than that it has one.
            assert [*filter(is_scan, steps)] or (store.dialect == "postgresql" and "path" in condition), condition
