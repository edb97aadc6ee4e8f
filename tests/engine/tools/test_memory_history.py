"""``memory``: its history, what comes back of it, and what rivals do to it."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest
from sqlalchemy import func, select, update

from engine import ActionSettings, CallContext, ToolRow
from engine.memory_limits import PAST, RESTORABLE, VERSIONS
from engine.tool_ledger import sums_of
from engine.tool_schema import memory_files, memory_history, text_index, tool_ledgers
from events import Executed
from tests.engine.gating import paused, resumed
from tests.engine.staging import call, outcome_of, proved, staged_engine
from tests.engine.tools.keeping import bound, failure, opened, start
from tests.engine.tools.memories import content_of, made, paths_of, runner

__all__ = ()

pytestmark = pytest.mark.anyio


async def test_the_history_says_who_wrote_what_and_brings_it_back(journal_url: str) -> None:
    async with opened(journal_url) as store:
        run = runner(store)
        await run("memory_create", key="m1:a", conversation="c7", path="/f", file_text="one")
        await run("memory_create", key="m1:b", path="/f", file_text="zwei")
        await run("memory_create", key="m1:b", path="/f", file_text="zwei")
        await run("memory_delete", key="m1:d", path="/f")
        assert failure(await run("memory_view", path="/f")) == "Error: File not found: /f"
        assert "(empty)" in await run("memory_view", path="/")
        assert "/f: " in await run("memory_history", path="/")
        assert await run("memory_restore", path="/f") == "Restored: /f says what it said at version 2."
        assert await content_of(run, "/f") == "zwei"
        assert await run("memory_restore", path="/f", version=1) == "Restored: /f says what it said at version 1."
        assert await content_of(run, "/f") == "one"
        lines = (await run("memory_history", path="/f")).split("\n")
        assert [re.sub(r"\d{4}-.* UTC", "T", line) for line in lines] == [
            "Versions of /f:",
            "- version 5: 3 bytes, T, by call m1:c1",
            "- version 4: 4 bytes, T, by call m1:c1",
            "- version 3: deleted, T, by call m1:d",
            "- version 2: 4 bytes, T, by call m1:b",
            "- version 1: 3 bytes, T, by call m1:a in conversation c7",
        ]
        assert await run("memory_history", path="/nothing") == "Nothing is kept of /nothing."


async def test_a_directory_comes_back_whole_or_not_at_all(journal_url: str) -> None:
    async with opened(journal_url) as store:
        run = runner(store)
        await made(run, "/d/a", "/d/b/c", "/d/old", text="needle")
        await run("memory_delete", path="/d/old")
        await run("memory_delete", path="/d/")
        assert await run("memory_search", query="needle") == "No file below / has it."
        await made(run, "/d", text="in the way")
        assert "/d" in failure(await run("memory_restore", path="/d/"))
        await run("memory_delete", path="/d")
        assert await run("memory_restore", path="/d/") == "Restored 2 file(s) below /d/."
        assert await paths_of(run) == ["d/a", "d/b/c"]
        assert (await run("memory_search", query="NEEDLE")).count("\n- /d/") == 2
        assert await run("memory_rename", old_path="/d", new_path="/e") == "Renamed directory: /d/ -> /e/ (2 files)"
        assert (await run("memory_search", query="NEEDLE")).count("\n- /e/") == 2
        assert await run("memory_rename", old_path="/e", new_path="/d") == "Renamed directory: /e/ -> /d/ (2 files)"
        assert (await run("memory_search", query="NEEDLE", path="/d/b")).count("\n- /d/") == 1
        assert "/d/a is there" in failure(await run("memory_restore", path="/d/a"))
        assert await run("memory_restore", path="/d/old") == "Restored: /d/old says what it said at version 1."


async def test_no_update_is_lost_between_two_engines(journal_url: str) -> None:
    async with opened(journal_url) as first, opened(journal_url) as second:
        await made(runner(first), "/f", text="top")
        async with anyio.create_task_group() as tasks:
            for number in range(6):
                for name, store in (("a", first), ("b", second)):
                    start(
                        tasks, runner(store), "memory_insert", path="/f", insert_line=1, insert_text=f"{name}{number}"
                    )
                    start(tasks, runner(store), "memory_create", path=f"/{name}{number}", file_text="x")
        lines = (await content_of(runner(first), "/f")).split("\n")
        expected = [f"{name}{number}" for number in range(6) for name in "ab"]
        assert sorted(lines) == sorted([*expected, "top"])
        assert await paths_of(runner(second)) == sorted([*expected, "f"])
        await agrees(first)


async def test_rivals_leave_no_file_in_a_file_and_exceed_no_quota(journal_url: str) -> None:
    async with opened(journal_url) as first, opened(journal_url) as second:
        async with anyio.create_task_group() as tasks:
            for number in range(4):
                for place, store in enumerate((first, second)):
                    run, path = runner(store, max_files=5), f"/n{number}" + "/x" * place
                    start(tasks, run, "memory_create", path=path, file_text="x")
                    start(tasks, run, "memory_create", path=f"/q{number}{place}", file_text="x")
        paths = await paths_of(runner(first))
        assert len(paths) == 5
        assert not any(other.startswith(f"{path}/") for path in paths for other in paths)
        await agrees(first)


async def agrees(store: Any) -> None:
    """Assert that the sums are those of what is there."""
    sums = await sums_of(bound(store))
    files, past = memory_files.c, memory_history.c
    there = await store.read(select(func.count(), func.coalesce(func.sum(files.size), 0)))
    kept_bytes = await store.read(select(func.coalesce(func.sum(past.size), 0)))
    assert (sums.entries, sums.size, sums.past) == (*map(int, there[0]), int(kept_bytes[0][0]))


async def test_the_history_is_bounded_by_number_and_age(journal_url: str) -> None:
    async with opened(journal_url) as store:
        run = runner(store)
        for number in range(VERSIONS + 3):
            await run("memory_create", path="/f", file_text=f"n{number}")
        assert (await run("memory_history", path="/f")).count("- version") == VERSIONS
        await made(run, "/old", "/recent", "/again", text="needle")
        for path in ("/old", "/recent", "/again"):
            await run("memory_delete", path=path)
        await made(run, "/again", text="haystack")
        long_ago = datetime.now(UTC) - RESTORABLE - timedelta(hours=1)
        await store.write(
            [update(memory_history).where(memory_history.c.path != "/recent").values(changed_at=long_ago)]
        )
        await run("memory_create", path="/f", file_text="last")
        assert "Nothing is kept of /old." in failure(await run("memory_restore", path="/old"))
        assert (await run("memory_history", path="/again")).count("- version") == 1
        assert await run("memory_restore", path="/recent") == "Restored: /recent says what it said at version 1."
        assert await content_of(run, "/again") == "haystack"
        index = await store.read(select(text_index.c.key).distinct().order_by(text_index.c.key))
        assert [row[0] for row in index] == ["/again", "/f", "/recent"]
        await agrees(store)


async def test_the_history_has_so_many_bytes_and_no_more(sqlite_url: str) -> None:
    async with opened(sqlite_url) as store:
        run = runner(store)
        await made(run, "/a", text="a" * 100)
        await run("memory_create", path="/a", file_text="b" * 100)
        await run("memory_create", path="/a", file_text="c" * 100)
        await store.write([update(tool_ledgers).values(past=PAST)])
        await made(run, "/b", text="b" * 150)
        assert (await run("memory_history", path="/a")).count("- version") == 1
        assert await content_of(run, "/a") == "c" * 100
        assert (await sums_of(bound(store))).past == PAST - 50


async def test_an_approved_deletion_is_the_one_that_was_asked_for(journal_url: str) -> None:
    asked = ActionSettings(name="memory_delete", require_approval=True)
    row = ToolRow(id="t1", name="memory", user_id="u", actions=[ActionSettings(name="memory_create"), asked])
    async with staged_engine(journal_url, rows=[row]) as engine:
        context = CallContext(user_id="u", message_id="m", conversation_id="c7", tool_ids=["t1"])
        first = call({"path": "/d/a", "file_text": "x"}, call_id="c0", name="memory_create")
        assert isinstance(await outcome_of(engine, first, context), Executed)
        await paused(engine, call({"path": "/d/"}, name="memory_delete"), context)
        run = runner(engine.log.store, "u")
        assert await paths_of(run) == ["d/a"]
        await engine.decide("m:c1", approve=True, user_id="u", by="ada")
        deleted = await resumed(engine, context=context)
        assert isinstance(deleted, Executed)
        assert deleted.result == "Deleted directory and 1 file(s)."
        assert "by call m:c0 in conversation c7" in await run("memory_history", path="/d/a")
        assert "by call m:c1 in conversation c7" in await run("memory_history", path="/d/")
        await proved(engine)


async def test_a_search_finds_nothing_that_is_deleted_by_its_name(journal_url: str) -> None:
    async with opened(journal_url) as store:
        run = runner(store)
        await made(run, "/canary0", "/canary1", "/d/canary2")
        for path in ("/canary0", "/d/"):
            await run("memory_delete", path=path)
        found = await run("memory_search", query="canary")
        assert [f"canary{n}" in found for n in range(3)] == [False, True, False]
        await run("memory_restore", path="/canary0")
        assert "/canary0" in await run("memory_search", query="canary")
