"""``wiki`` with ten thousand pages: every statement of every action goes by an index; listings read no contents."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import Engine, event, insert, text

from engine.tool_schema import wiki_links, wiki_pages, wiki_revisions
from engine.wiki.actions import wiki_actions
from tests.engine.wiki.wikis import opened, runner

pytestmark = pytest.mark.anyio

PAGES = 10_000
CALLS: dict[str, dict[str, Any]] = {
    "wiki_view": {"path": "/d5/p105"},
    "wiki_list": {"prefix": "/d7/", "after": "/d7/p107"},
    "wiki_search": {"text": "Body 9999"},
    "wiki_links": {"path": "/d5/p105"},
    "wiki_history": {"path": "/d5/p105"},
    "wiki_diff": {"path": "/d5/p105", "from": 1},
    "wiki_create": {"path": "/new", "content": "[[/d5/p105]]"},
    "wiki_write": {"path": "/d5/p105", "content": "[[/d6/p106]]", "expected_version": 1},
    "wiki_str_replace": {"path": "/d5/p105", "old_str": "p106", "new_str": "p206", "expected_version": 2},
    "wiki_insert": {"path": "/d5/p105", "insert_line": 1, "insert_text": "x", "expected_version": 3},
    "wiki_restore": {"path": "/d5/p105", "version": 1},
    "wiki_rename": {"old_path": "/d5/", "new_path": "/e/"},
    "wiki_delete": {"path": "/e/", "recursive": True},
}


def fill(connection: Any) -> None:
    """Write the pages of two wikis at once; through the tool it would take a minute."""
    now = datetime.now(UTC)
    for wiki, count in (("w1", PAGES), ("w2", PAGES // 10)):
        at = [{"tenant": "uada", "wiki": wiki, "path": f"/d{n % 100}/p{n}", "version": 1} for n in range(count)]
        said = [{"title": f"Page {n}", "content": f"body {n}\n" * 20} for n in range(count)]
        when = {"created_at": now, "updated_at": now}
        connection.execute(insert(wiki_pages), [{**a, **s, **when} for a, s in zip(at, said, strict=True)])
        by = [{"changed_at": now, "changed_by": "ada", "by_call": f"c{n}"} for n in range(count)]
        connection.execute(insert(wiki_revisions), [{**a, **s, **b} for a, s, b in zip(at, said, by, strict=True)])
        links = [{**each, "target": f"/d{n % 90}/p{n % 900}"} for n, each in enumerate(at)]
        for link in links:
            del link["version"]
        connection.execute(insert(wiki_links), links)


@contextmanager
def explained(plans: list[tuple[str, str]]) -> Iterator[None]:
    """Note each statement with its plan."""
    explaining = False

    def explain(connection: Any, cursor: Any, statement: str, parameters: Any, context: Any, many: bool) -> None:
        nonlocal explaining
        if explaining or "wiki_" not in statement:
            return
        explaining = True
        verb = "EXPLAIN QUERY PLAN " if connection.dialect.name == "sqlite" else "EXPLAIN "
        plan = connection.exec_driver_sql(verb + statement, parameters[0] if many else parameters)
        plans.append((statement, "\n".join(str(row[-1]) for row in plan)))
        explaining = False

    event.listen(Engine, "before_cursor_execute", explain)
    try:
        yield
    finally:
        event.remove(Engine, "before_cursor_execute", explain)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_every_statement_goes_by_an_index(database_url: str) -> None:
    assert sorted(CALLS) == sorted(action["name"] for action in wiki_actions())
    plans: list[tuple[str, str]] = []
    async with opened(database_url) as store:
        await store.transact(fill)
        if store.dialect == "postgresql":
            # That server does it by itself; SQLite never does.
            await store.transact(lambda connection: connection.execute(text("ANALYZE")))
        run = runner(store)
        with explained(plans):
            for action, arguments in CALLS.items():
                assert isinstance(await run(action, **arguments), str), action
    assert len(plans) > 40
    scans = [each for each in plans if "SCAN wiki_" in each[1] or "Seq Scan on wiki_" in each[1]]
    assert scans == []
    searches = [line for _, plan in plans for line in plan.split("\n") if "SEARCH wiki_" in line]
    # Not all of a wiki either: by path, by target, by call.
    assert [line for line in searches if not re.search(r"wiki=\? AND (path|target|by_call)[=>]", line)] == []
