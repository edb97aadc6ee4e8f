"""``todo_list``: numbers of a user's own that are never given twice, parts, due dates, history, on a real database."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest
from sqlalchemy import func, select, update

from engine.todo_limits import AT_ONCE, LISTED, LONGEST_TITLE, REMEMBERED, TODOS, VERSIONS
from engine.tool_ledger import sums_of
from engine.tool_schema import todo_history, todos, tool_ledgers
from engine.tools.todo_list import TodoList
from tests.engine.tools.keeping import Run, bound, failure, opened, start
from tests.engine.tools.keeping import runner as kept

pytestmark = pytest.mark.anyio


def runner(store: Any, user: str = "ada", tool_id: str = "t1") -> Run:
    return kept(TodoList, store, user, tool_id)


async def test_items_are_created_listed_changed_completed_and_deleted(journal_url: str) -> None:
    async with opened(journal_url) as store:
        run = runner(store)
        assert await run("todo_list") == "No todos found."
        assert await run("todo_create", title=" buy\nmilk ") == "Todo created with ID 1: buy milk"
        assert await run("todo_create", titles=["a", "b"]) == "Todo created with ID 2: a\nTodo created with ID 3: b"
        assert await run("todo_complete", todo_id="2") == "Todo 2 marked as completed."
        assert await run("todo_complete", todo_id=2) == "Todo 2 marked as completed."
        assert await run("todo_list") == "Todos:\n[1] buy milk (open)\n[2] a (completed)\n[3] b (open)"
        assert await run("todo_list", status="open") == "Todos:\n[1] buy milk (open)\n[3] b (open)"
        assert await run("todo_list", status="completed") == "Todos:\n[2] a (completed)"
        assert await run("todo_reopen", todo_id=2) == "Todo 2 marked as open."
        assert await run("todo_update", todo_id=2, title="A") == "Todo 2 updated to: A"
        assert await run("todo_get", todo_id=2) == "Todo [2]:\nTitle: A\nStatus: open\nPriority: normal"
        assert await run("todo_delete", todo_id=3) == "Todo 3 deleted."
        assert await run("todo_list", after=1) == "Todos:\n[2] A (open)"
        assert (
            await run("todo_list", limit=1) == "Todos:\n[1] buy milk (open)\n(there are more; list them with after: 1)"
        )


async def test_numbers_are_each_users_own_and_never_given_twice(journal_url: str) -> None:
    async with opened(journal_url) as store:
        ada, bob, other = runner(store), runner(store, "bob"), runner(store, tool_id="t2")
        await ada("todo_create", titles=["a", "b"])
        for run in (bob, other):
            assert await run("todo_create", title="x") == "Todo created with ID 1: x"
        await ada("todo_delete", todo_id=2)
        assert await ada("todo_create", title="c") == "Todo created with ID 3: c"
        for number in (1, 3):
            await ada("todo_delete", todo_id=number)
        assert await ada("todo_list") == "No todos found."
    async with opened(journal_url) as store:
        assert await runner(store)("todo_create", title="d") == "Todo created with ID 4: d"


async def test_items_have_a_priority_a_due_date_and_parts(journal_url: str) -> None:
    async with opened(journal_url) as store:
        run = runner(store)
        await run("todo_create", title="trip", priority="urgent", due_at="2030-01-31")
        await run("todo_create", titles=["pack", "book"], parent="1", due_at="2030-01-30T09:00:00.5+01:00")
        assert (await run("todo_get", todo_id=1)).split("\n")[3:] == [
            "Priority: urgent",
            "Due: 2030-01-31T00:00:00Z",
            "Parts:",
            "[2] pack (open) - due 2030-01-30T08:00:00Z, part of [1]",
            "[3] book (open) - due 2030-01-30T08:00:00Z, part of [1]",
        ]
        assert await run("todo_update", todo_id=2, due_at="", priority="low") == "Todo 2 updated to: pack"
        assert "[2] pack (open) - low priority, part of [1]" in await run("todo_list")
        assert "itself part of [1]" in failure(await run("todo_create", title="x", parent=2))
        assert "cannot be part of itself" in failure(await run("todo_update", todo_id=1, parent=1))
        await run("todo_create", title="other")
        assert "while it has parts" in failure(await run("todo_update", todo_id=1, parent=4))
        assert "has 2 part(s)" in failure(await run("todo_delete", todo_id=1))
        assert await run("todo_update", todo_id=3, parent=0) == "Todo 3 updated to: book"
        assert await run("todo_delete", todo_id=1, recursive=True) == "Todo 1 deleted."
        assert [line[:3] for line in (await run("todo_list")).split("\n")[1:]] == ["[3]", "[4]"]


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("todo_create", {}, "Error: Title is required."),
    ("todo_create", {"title": " \n"}, "Error: Title is required."),
    ("todo_create", {"title": 5}, "Error: Title is required."),
    ("todo_create", {"title": "x" * (LONGEST_TITLE + 1)}, f"at most {LONGEST_TITLE}"),
    ("todo_create", {"titles": []}, "Error: Title is required."),
    ("todo_create", {"titles": ["a", ""]}, "Error: Title is required."),
    ("todo_create", {"titles": "ab"}, "Error: Title is required."),
    ("todo_create", {"title": "a", "titles": ["b"]}, "not both"),
    ("todo_create", {"titles": ["a"] * (AT_ONCE + 1)}, f"at most {AT_ONCE}"),
    ("todo_create", {"title": "a", "priority": "huge"}, "priority must be one of low, normal, high, urgent."),
    ("todo_create", {"title": "a", "priority": ["low"]}, "priority must be one of"),
    ("todo_create", {"title": "a", "due_at": "tomorrow"}, "due_at must be an ISO 8601 date or time"),
    ("todo_create", {"title": "a", "due_at": "0001-01-01T00:00:00+14:00"}, "due_at must be an ISO 8601"),
    ("todo_create", {"title": "a", "due_at": 20300131}, "due_at must be an ISO 8601"),
    ("todo_create", {"title": "a", "parent": 9}, "Error: Todo with ID 9 not found."),
    ("todo_create", {"title": "a", "parent": "x"}, "parent must be a positive integer."),
    ("todo_create", {"title": "a", "parent": False}, "parent must be a positive integer."),
    *[
        (action, {"todo_id": wrong, "title": "x"} if action == "todo_update" else {"todo_id": wrong}, said)
        for action in ("todo_get", "todo_update", "todo_complete", "todo_reopen", "todo_delete", "todo_history")
        for wrong, said in [
            (0, "Error: todo_id must be a positive integer."),
            (-1, "Error: todo_id must be a positive integer."),
            (True, "Error: todo_id must be a positive integer."),
            (1.0, "Error: todo_id must be a positive integer."),
            ("1.0", "Error: todo_id must be a positive integer."),
            (" 1", "Error: todo_id must be a positive integer."),
            ("\u0661", "Error: todo_id must be a positive integer."),
            (None, "Error: todo_id must be a positive integer."),
            (2, "Error: Todo with ID 2 not found."),
            (2**31, f"Error: Todo with ID {2**31} not found."),
        ]
    ],
    ("todo_update", {"todo_id": 1}, "Nothing to change"),
    ("todo_update", {"todo_id": 1, "title": ""}, "Error: Title is required."),
    ("todo_list", {"status": "done"}, "status must be open, completed or all."),
    ("todo_burn", {}, "Error: Unknown action: todo_burn"),
    ("list", {}, "Error: Unknown action: list"),
]


async def test_what_cannot_be_done_is_said_and_changes_nothing(sqlite_url: str) -> None:
    async with opened(sqlite_url) as store:
        run = runner(store)
        await run("todo_create", title="one")
        for action, arguments, said in REFUSED:
            assert said in failure(await run(action, **arguments)), (action, arguments)
        assert await run("todo_list") == "Todos:\n[1] one (open)"
        assert await run("todo_create", title="two") == "Todo created with ID 2: two"


async def test_the_history_says_what_an_item_was_and_which_call_changed_it(journal_url: str) -> None:
    async with opened(journal_url) as store:
        run = runner(store)
        await run("todo_create", key="m1:a", title="one", due_at="2030-01-31")
        await run("todo_update", key="m1:b", todo_id=1, title="eins")
        await run("todo_update", key="m1:c", todo_id=1, title="eins")
        await run("todo_complete", key="m1:d", todo_id=1)
        await run("todo_delete", key="m1:e", todo_id=1)
        said = re.sub(r"; \S+ \S+ UTC, by call ", "; ", await run("todo_history", todo_id=1))
        assert said.split("\n") == [
            "Versions of todo [1]:",
            "- version 4: deleted; m1:e",
            "- version 3: [1] eins (completed) - due 2030-01-31T00:00:00Z; m1:d",
            "- version 2: [1] eins (open) - due 2030-01-31T00:00:00Z; m1:b",
            "- version 1: [1] one (open) - due 2030-01-31T00:00:00Z; m1:a",
        ]
        await run("todo_create", title="two")
        for number in range(VERSIONS + 2):
            await run("todo_update", todo_id=2, title=f"two {number}")
        assert (await run("todo_history", todo_id=2)).count("- version") == VERSIONS
        await store.write([update(todo_history).values(changed_at=datetime.now(UTC) - REMEMBERED - timedelta(hours=1))])
        await run("todo_create", title="three")
        await run("todo_delete", todo_id=3)
        assert "Todo with ID 1 not found." in failure(await run("todo_history", todo_id=1))
        assert (await run("todo_history", todo_id=2)).count("- version") == VERSIONS
        assert "deleted" in await run("todo_history", todo_id=3)


async def test_no_change_and_no_number_is_lost_between_two_engines(journal_url: str) -> None:
    async with opened(journal_url) as first, opened(journal_url) as second:
        await runner(first)("todo_create", title="shared")
        async with anyio.create_task_group() as tasks:
            for number in range(4):
                for name, store in (("a", first), ("b", second)):
                    start(tasks, runner(store), "todo_create", titles=[f"{name}{number}", f"{name}{number}'"])
            for name, store in (("title", first), ("priority", second), ("due_at", first)):
                values = {"title": "changed", "priority": "high", "due_at": "2030-01-31"}
                start(tasks, runner(store), "todo_update", todo_id=1, **{name: values[name]})
            start(tasks, runner(second), "todo_complete", todo_id=1)
        lines = (await runner(first)("todo_list")).split("\n")[1:]
        assert lines[0] == "[1] changed (completed) - high priority, due 2030-01-31T00:00:00Z"
        assert [line.partition(" ")[0] for line in lines] == [f"[{number}]" for number in range(1, 18)]
        for line, after in zip(lines[1::2], lines[2::2], strict=True):
            assert after.split(" ")[1] == line.split(" ")[1] + "'"
        sums = await sums_of(bound(first))
        assert (sums.entries, sums.last) == (17, 17)


async def test_there_are_so_many_items_and_no_more(sqlite_url: str) -> None:
    async with opened(sqlite_url) as store:
        run = runner(store)
        await run("todo_create", titles=["x"] * AT_ONCE)
        assert (await run("todo_list")).count("\n") == AT_ONCE
        assert (await store.read(select(func.count()).select_from(todos)))[0][0] == AT_ONCE < LISTED
        await store.write([update(tool_ledgers).values(entries=TODOS - 1)])
        assert f"at most {TODOS}" in failure(await run("todo_create", titles=["a", "b"]))
        assert await run("todo_create", title="a") == f"Todo created with ID {AT_ONCE + 1}: a"
        assert f"at most {TODOS}" in failure(await run("todo_create", title="b"))
