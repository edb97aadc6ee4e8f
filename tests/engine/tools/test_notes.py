"""``notes``: literal edits, no lost updates, one note per user and row, on a real database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import anyio
import pytest
from anyio.abc import TaskGroup
from sqlalchemy import select

from engine.contract import Scope, ToolContext, ToolResult
from engine.note_limits import LARGEST, VERSIONS
from engine.schema import note_history
from engine.starting import CHAINS
from engine.tools.notes import Notes
from engine.toolstore import BoundStore
from events.keys import tenant_column
from events.opening import open_log
from events.store import Store
from projections.attempts import AttemptsProjection

pytestmark = pytest.mark.anyio

Run = Callable[..., Awaitable[Any]]


def context_for(store: Any, user: str, key: str = "m1:c1") -> ToolContext:
    return ToolContext(
        user_id=user,
        message_id="m1",
        call_id="c1",
        conversation_id=None,
        run_id=None,
        agent_id=None,
        attachments=(),
        idempotency_key=key,
        deadline=datetime.now(UTC),
        progress=lambda done, total, message: None,
        store=store,
    )


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Store]:
    log = await open_log(url, AttemptsProjection(), CHAINS)
    try:
        yield log.store
    finally:
        await log.aclose()


def runner(store: Any, user: str = "ada", tool_id: str = "t1") -> Run:
    """Return a function that runs an action as this user on this row."""
    tool = Notes({}, Scope(user_id=user, owner=user, tool_id=tool_id))
    bound = BoundStore(store, tenant_column(user), tool_id)

    async def run(action: str, /, key: str = "m1:c1", **kwargs: Any) -> Any:
        return await tool.execute_action(action, context_for(bound, user, key), **kwargs)

    return run


def start(tasks: TaskGroup, run: Run, action: str, **kwargs: Any) -> None:
    """Run an action beside others."""

    async def running() -> None:
        await run(action, **kwargs)

    tasks.start_soon(running)


def failure(result: Any) -> str:
    assert isinstance(result, ToolResult)
    assert result.status == "error"
    return str(result.data)


async def test_a_note_is_written_read_and_deleted(database_url: str) -> None:
    async with opened(database_url) as store:
        run = runner(store)
        assert failure(await run("note_view")) == "No note found."
        assert await run("note_overwrite", text="  milk\neggs  ") == "Note saved."
        assert await run("note_view") == "  milk\neggs  "
        assert await run("note_insert", line_number=2, text="bread") == "Text inserted."
        assert await run("note_str_replace", old_str="milk", new_str="oat milk") == "Note updated."
        assert await run("view") == "  oat milk\nbread\neggs  "
        assert await run("note_delete") == "Note deleted."
        assert failure(await run("note_delete")) == "No note found to delete."
        assert failure(await run("note_view")) == "No note found."


async def test_a_note_outlives_the_engine_and_belongs_to_one_user_and_row(database_url: str) -> None:
    async with opened(database_url) as store:
        await runner(store)("note_overwrite", text="ada's")
        await runner(store, tool_id="t2")("note_overwrite", text="ada's second")
    async with opened(database_url) as store:
        assert await runner(store)("note_view") == "ada's"
        assert await runner(store, tool_id="t2")("note_view") == "ada's second"
        assert failure(await runner(store, "bob")("note_view")) == "No note found."
        assert failure(await runner(store, "bob")("note_delete")) == "No note found to delete."
        assert await runner(store)("note_view") == "ada's"


@pytest.mark.parametrize(
    ("old", "new", "result"),
    [
        (r"C:\old", r"C:\new\1\n", r"path C:\new\1\n, Cat concatenate"),
        ("Cat ", "Dog ", r"path C:\old, Dog concatenate"),
        (".", "x", None),
        ("cat", "dog", r"path C:\old, Cat condogenate"),
        ("", "x", None),
        ("Cat concatenate", "", r"path C:\old, "),
    ],
)
async def test_replacing_is_literal_and_unique(tmp_path: Any, old: str, new: str, result: str | None) -> None:
    async with opened(f"sqlite:///{tmp_path}/n.db") as store:
        run = runner(store)
        before = r"path C:\old, Cat concatenate"
        await run("note_overwrite", text=before)
        outcome = await run("note_str_replace", old_str=old, new_str=new)
        if result is None:
            assert failure(outcome)
        assert await run("note_view") == (before if result is None else result)


async def test_several_places_are_replaced_only_when_asked(tmp_path: Any) -> None:
    async with opened(f"sqlite:///{tmp_path}/n.db") as store:
        run = runner(store)
        await run("note_overwrite", text="a b a")
        assert "occurs 2 times" in failure(await run("note_str_replace", old_str="a", new_str="c"))
        assert await run("note_str_replace", old_str="a", new_str="c", replace_all=True) == "Note updated."
        assert await run("note_view") == "c b c"


@pytest.mark.parametrize(
    ("action", "arguments", "said"),
    [
        ("note_overwrite", {"text": " \n"}, "Note content required."),
        ("note_overwrite", {"text": 5}, "text must be text."),
        ("note_overwrite", {"text": "é" * LARGEST}, f"at most {LARGEST}"),
        ("note_str_replace", {"old_str": "", "new_str": "x"}, "old_str is required."),
        ("note_str_replace", {"old_str": "zz", "new_str": "x"}, "String 'zz' not found in note."),
        ("note_str_replace", {"old_str": "one", "new_str": "x" * LARGEST}, f"at most {LARGEST}"),
        ("note_insert", {"line_number": 0, "text": "x"}, "Invalid line number. Note has 2 lines."),
        ("note_insert", {"line_number": 4, "text": "x"}, "Invalid line number. Note has 2 lines."),
        ("note_insert", {"line_number": "1", "text": "x"}, "line_number must be a whole number"),
        ("note_insert", {"line_number": True, "text": "x"}, "line_number must be a whole number"),
        ("note_insert", {"line_number": 1, "text": ""}, "Text is required."),
        ("note_burn", {}, "Unknown action: note_burn"),
    ],
)
async def test_what_cannot_be_done_is_said_and_changes_nothing(
    tmp_path: Any, action: str, arguments: dict[str, Any], said: str
) -> None:
    async with opened(f"sqlite:///{tmp_path}/n.db") as store:
        run = runner(store)
        await run("note_overwrite", text="one\ntwo\n")
        assert said in failure(await run(action, **arguments))
        assert await run("note_view") == "one\ntwo\n"


@pytest.mark.parametrize(
    ("before", "line", "text", "after"),
    [
        ("one\ntwo\n", 3, "three", "one\ntwo\nthree\n"),
        ("one\ntwo", 3, "three", "one\ntwo\nthree"),
        ("one\ntwo", 1, "zero\n", "zero\none\ntwo"),
        ("\n", 1, "x", "x\n\n"),
        ("one", 2, "a\nb\n", "one\na\nb"),
        ("two\u2028lines?", 2, "x", "two\u2028lines?\nx"),
    ],
)
async def test_lines_are_inserted(tmp_path: Any, before: str, line: int, text: str, after: str) -> None:
    async with opened(f"sqlite:///{tmp_path}/n.db") as store:
        run = runner(store)
        await run("note_overwrite", text="x")
        await run("note_str_replace", old_str="x", new_str=before)
        await run("note_insert", line_number=line, text=text)
        assert await run("note_view") == after


async def test_a_note_can_become_empty_and_grow_again(tmp_path: Any) -> None:
    async with opened(f"sqlite:///{tmp_path}/n.db") as store:
        run = runner(store)
        await run("note_overwrite", text="x")
        await run("note_str_replace", old_str="x", new_str="")
        assert await run("note_view") == ""
        assert await run("note_insert", line_number=1, text="new") == "Text inserted."
        assert await run("note_view") == "new"


async def test_text_that_no_database_stores_is_made_storable(database_url: str) -> None:
    async with opened(database_url) as store:
        run = runner(store)
        await run("note_overwrite", text="a\x00b\ud800c")
        assert await run("note_view") == "ab\ufffdc"


async def test_no_update_is_lost_between_two_engines(database_url: str) -> None:
    async with opened(database_url) as first, opened(database_url) as second:
        await runner(first)("note_overwrite", text="top")
        async with anyio.create_task_group() as tasks:
            for number in range(8):
                for name, store in (("a", first), ("b", second)):
                    start(tasks, runner(store), "note_insert", line_number=1, text=f"{name}{number}")
        lines = (await runner(first)("note_view")).split("\n")
        assert sorted(lines) == sorted([*(f"{name}{number}" for number in range(8) for name in "ab"), "top"])
        assert await runner(first)("note_view") == await runner(second)("note_view")


async def test_of_two_that_begin_a_note_the_later_overwrites(database_url: str) -> None:
    async with opened(database_url) as first, opened(database_url) as second:
        async with anyio.create_task_group() as tasks:
            for number in range(6):
                run = runner(first if number % 2 else second)
                start(tasks, run, "note_overwrite", text=f"text {number}")
        assert (await runner(first)("note_view")).startswith("text ")
        assert len(await history(first)) == 6


async def history(store: Any) -> Sequence[Any]:
    columns = note_history.c
    return list(await store.read(select(columns.version, columns.content, columns.by_call).order_by(columns.version)))


async def test_the_history_says_what_the_note_said_and_which_call_wrote_it(database_url: str) -> None:
    async with opened(database_url) as store:
        run = runner(store)
        await run("note_overwrite", key="m1:a", text="one")
        await run("note_str_replace", key="m1:b", old_str="one", new_str="two")
        await run("note_str_replace", key="m1:c", old_str="zz", new_str="two")
        await run("note_delete", key="m1:d")
        await run("note_overwrite", key="m2:a", text="three")
        assert [tuple(row) for row in await history(store)] == [
            (1, "one", "m1:a"),
            (2, "two", "m1:b"),
            (3, "three", "m2:a"),
        ]


async def test_the_history_is_bounded(tmp_path: Any) -> None:
    async with opened(f"sqlite:///{tmp_path}/n.db") as store:
        run = runner(store)
        for number in range(VERSIONS + 5):
            await run("note_overwrite", text=f"n{number}")
        rows = await history(store)
        assert [row[0] for row in rows] == list(range(6, VERSIONS + 6))
