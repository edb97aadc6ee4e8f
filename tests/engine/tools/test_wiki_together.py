"""``wiki`` for several at once: no update is lost, no place taken twice, no call made twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import anyio
import pytest
from sqlalchemy import select

from engine.tool_schema import wiki_revisions
from tests.engine.wiki.wikis import (
    Run,
    everything,
    filled,
    links_that_are_wrong,
    opened,
    pages,
    runner,
    said,
)

pytestmark = pytest.mark.anyio


async def at_once(*runs: Callable[[], Any]) -> list[Any]:
    """Return what calls that are made at once return."""
    results: list[Any] = [None] * len(runs)

    async def one(place: int) -> None:
        results[place] = await runs[place]()

    async with anyio.create_task_group() as tasks:
        for place in range(len(runs)):
            tasks.start_soon(one, place)
    return results


async def test_no_update_is_lost_between_two_engines(database_url: str) -> None:
    async with opened(database_url) as first, opened(database_url) as second:
        await filled(runner(first), p="top", p2="[[p]]")

        async def add(run: Run, name: str) -> None:
            """Read and edit until the edit is one of the version that was read, as a model would."""
            while True:
                version = int((await run("wiki_view", path="/p")).split("\n")[1].removeprefix("Version: "))
                edit = {"path": "/p", "insert_line": 1, "insert_text": name, "expected_version": version}
                if isinstance(await run("wiki_insert", **edit), str):
                    return

        async with anyio.create_task_group() as tasks:
            for number in range(6):
                for name, store in (("a", first), ("b", second)):
                    tasks.start_soon(add, runner(store), f"{name}{number}")
        lines = (await said(runner(first), "/p")).split("\n")
        assert sorted(lines) == sorted([*(f"{name}{number}" for number in range(6) for name in "ab"), "top"])
        columns = wiki_revisions.c
        versions = await first.read(select(columns.version).where(columns.path == "/p").order_by(columns.version))
        assert [row[0] for row in versions] == list(range(1, 14))


async def test_of_two_that_want_one_place_one_has_it(database_url: str) -> None:
    async with opened(database_url) as first, opened(database_url) as second:
        one, two = runner(first), runner(second)
        results = await at_once(
            *(
                lambda run=run, n=n: run("wiki_create", path="/p", content=f"{n}")
                for n in range(4)
                for run in (one, two)
            ),
            *(lambda run=run: run("wiki_create", path="/p/below", content="") for run in (one, two)),
        )
        assert len([each for each in results if isinstance(each, str)]) == 1
        await filled(one, x="", y="[[x]]", q__1="", q__2="[[y]]")
        await at_once(
            lambda: one("wiki_rename", old_path="/x", new_path="/z"),
            lambda: two("wiki_rename", old_path="/y", new_path="/z"),
            lambda: one("wiki_rename", old_path="/q/", new_path="/r"),
            lambda: two("wiki_rename", old_path="/q/", new_path="/s"),
            lambda: one("wiki_delete", path="/q/", recursive=True),
            lambda: two("wiki_write", path="/q/2", content="[[x]] [[q/1]]", expected_version=1),
        )
        assert await links_that_are_wrong(first) == []
        assert (await pages(one)).count("/z") == 1


async def test_a_call_that_is_run_again_changes_nothing_more(database_url: str) -> None:
    async with opened(database_url) as store:
        run, bob = runner(store), runner(store, "bob", everyone_writes=True)
        calls: Sequence[tuple[str, dict[str, Any]]] = (
            ("wiki_create", {"path": "/p", "content": "one [[d/a]]"}),
            ("wiki_create", {"path": "/d/a", "content": ""}),
            ("wiki_insert", {"path": "/p", "insert_line": 1, "insert_text": "x", "expected_version": 1}),
            ("wiki_str_replace", {"path": "/p", "old_str": "one", "new_str": "two", "expected_version": 2}),
            ("wiki_write", {"path": "/p", "content": "three [[d/a]]", "expected_version": 3}),
            ("wiki_rename", {"old_path": "/d", "new_path": "/e"}),
            ("wiki_rename", {"old_path": "/p", "new_path": "/q"}),
            ("wiki_restore", {"path": "/q", "version": 1}),
            ("wiki_delete", {"path": "/q"}),
            ("wiki_delete", {"path": "/e/", "recursive": True}),
        )
        for number, (action, arguments) in enumerate(calls):
            once = await run(action, key=f"m:{number}", **arguments)
            before = await everything(store)
            assert await run(action, key=f"m:{number}", **arguments) == once, action
            assert await everything(store) == before, action
        # Another user's call may have the same name, and is another call.
        assert await bob("wiki_create", key="m:0", path="/p", content="bob's") == "Page created: /p\nVersion: 7"


async def test_a_change_that_is_cancelled_is_made_whole_or_not_at_all(database_url: str) -> None:
    async with opened(database_url) as store:

        class Cancelling:
            """Cancels the caller as soon as the transaction has begun."""

            dialect = store.dialect

            async def read(self, statement: Any) -> Any:
                return await store.read(statement)

            async def transact(self, work: Callable[[Any], Any]) -> Any:
                scope.cancel()
                return await store.transact(work)

        run = runner(store)
        await filled(run, a="", b="[[a]]")
        with anyio.CancelScope() as scope:
            await runner(Cancelling())("wiki_rename", old_path="/a", new_path="/c")
        assert scope.cancelled_caught
        assert (await pages(run), await said(run, "/b")) == (["/b", "/c"], "[[c]]")
        with anyio.CancelScope() as scope:
            scope.cancel()
            await run("wiki_rename", old_path="/c", new_path="/d")
        assert await links_that_are_wrong(store) == []
        assert len(await pages(run)) == 2
