"""What tools keep of a user can be listed, exported and erased: all of it, nobody else's, and nothing finds it then."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from contextlib import aclosing
from typing import Any, Final

import anyio
import pytest
from sqlalchemy import func, select

from engine import CallContext, Engine, ToolManager, ToolRow
from engine import tool_schema as light
from engine.kept import Kept, KeptRecord, keepings
from engine.row_tools import RowTools
from engine.schema import metadata, note_history, notes
from engine.services import Services
from engine.tools.memory import Memory
from engine.tools.todo_list import TodoList
from events import Executed, LogUnavailable, NotFound, Refused
from events.codec import encode_json
from events.keys import tenant_column
from tests.engine.forecasts import storing
from tests.engine.staging import call, outcome_of, proved
from tests.engine.tools.households import Household, kept
from tests.engine.tools.keeping import bound, opened, runner
from tests.engine.tools.memories import made, paths_of
from tests.engine.tools.tenancies import SECRET, TENANCIES, Tenancy

__all__ = ()

pytestmark = pytest.mark.anyio

TOOLS: Final = RowTools(ToolManager(), Services())
SHARED: Final = {light.text_index.name, light.tool_ledgers.name}
"""What the tables of several tools need; erased with them."""

OTHERS: Final = {
    "policy_rules": "an operator's rules",
    "tool_rows": "how tools are configured: `tools remove`",
    "tool_row_versions": "how tools were configured",
    "tool_acceptances": "which shared rows are used",
    "team_members": "who is in which team",
    "tool_optouts": "which built-in tools are off",
    "oauth_tokens": "credentials",
    "tool_rates": "how fast a row may go on",
}
"""Tables of tenants that hold nothing which a tool keeps."""

each_tool = pytest.mark.parametrize("tenancy", TENANCIES, ids=lambda each: each.tool.name)


def test_no_table_can_be_forgotten() -> None:
    found = keepings(TOOLS.manager)
    assert sorted(found) == sorted(tenancy.tool.name for tenancy in TENANCIES)
    covered = {table.name for keeping in found.values() for table in keeping.tables}
    of_tenants = {name for name, table in metadata.tables.items() if "tenant" in table.c}
    assert of_tenants == covered | SHARED | set(OTHERS)
    assert not covered & set(OTHERS)
    tables = {getattr(light, name).name for name in light.__all__} | {notes.name, note_history.name}
    assert tables == covered | SHARED
    for keeping in found.values():
        for table in keeping.tables:
            assert {"tenant", keeping.whose, keeping.item} <= set(table.c.keys())
        # The pages that are read go by the rest of the key.
        key = ["tenant", keeping.whose, keeping.item]
        assert [column.name for column in keeping.items.primary_key] == key
        assert [column.name for column in keeping.past.primary_key] == [*key, "version"]
        assert keeping.hold is not None or keeping.whose == "tool_id"


async def exported(engine: Engine, user_id: str, **which: Any) -> list[KeptRecord]:
    async with aclosing(engine.kept.export(user_id=user_id, **which)) as records:
        return [record async for record in records]


async def rows_in(engine: Engine, user_id: str) -> Counter[str]:
    return Counter({name: len(rows) for name, rows in (await kept(engine, user_id)).items()})


@each_tool
async def test_what_is_there_is_told_and_what_is_erased_is_gone(journal_url: str, tenancy: Tenancy) -> None:
    async with storing(journal_url) as engine:
        users = Household(engine, tenancy)
        await users.move_in("ada", "bob", "eve")
        for user in ("ada", "bob"):
            await users.done(user, tenancy.seeds)
            await users.done(user, tenancy.samples)
            await users.done(user, tenancy.seeds[:1])
        bobs, before = await kept(engine, "bob"), await rows_in(engine, "ada")
        keeping = keepings(engine.rows.tools.manager)[tenancy.tool.name]
        (place,) = await engine.kept.list(user_id="ada")
        assert (place.tool, place.part) == (tenancy.tool.name, None)
        assert (place.items, place.versions) == (before[keeping.items.name], before[keeping.past.name])
        records = await exported(engine, "ada", history=True)
        assert Counter(record.kind for record in records) == {"item": place.items, "version": place.versions}
        assert records[: place.items] == await exported(engine, "ada")
        sizes = [texts(record, keeping.texts if record.kind == "item" else keeping.past_texts) for record in records]
        assert (sum(sizes[: place.items]), sum(sizes[place.items :])) == (place.size, place.past)
        for table, record in ((keeping.items, records[0]), (keeping.past, records[-1])):
            assert {"tenant", keeping.whose, *record.content} == set(table.c.keys())
        assert SECRET in encode_json([record.content for record in records]).decode()
        assert await engine.kept.erase(user_id="eve") == []
        (erased,) = await engine.kept.erase(user_id="ada")
        assert (erased.row, erased.items, erased.versions) == (place.row, place.items, place.versions)
        assert sum((await rows_in(engine, "ada")).values()) == 0
        assert await kept(engine, "bob") == bobs
        assert await engine.kept.list(user_id="ada") == []
        assert await exported(engine, "ada") == []
        for name, arguments in tenancy.samples[:4]:
            outcome = await users.run("ada", name, arguments)
            assert SECRET not in json.dumps(str(outcome.result)).replace(str(arguments.get("path")), ""), name
        # All begins anew.
        await engine.kept.erase(user_id="ada")
        await users.done("ada", tenancy.seeds)
        await users.done("ada", tenancy.samples)
        await users.done("ada", tenancy.seeds[:1])
        assert await rows_in(engine, "ada") == before
        await proved(engine)


def texts(record: KeptRecord, names: tuple[str, ...]) -> int:
    return sum(len((record.content[name] or "").encode()) for name in names)


async def test_one_row_or_tool_with_its_parts_and_no_other(journal_url: str) -> None:
    async with storing(journal_url) as engine:
        count = 0

        async def keep(row: str, name: str, arguments: dict[str, Any], **facts: Any) -> None:
            nonlocal count
            count += 1
            context = CallContext(user_id="ada", message_id=f"m{count}", tool_ids=(row,), **facts)
            assert isinstance(await outcome_of(engine, call(arguments, name=name), context), Executed)

        config = {"scope": "conversation"}
        for row, tool in (("r1", "memory"), ("r1A", "memory"), ("r", "memory"), ("n1", "notes"), ("t1", "todo_list")):
            await engine.rows.add(ToolRow(id=row, name=tool, config=config), user_id="ada")
        await engine.rows.add(ToolRow(id="w1", name="wiki", config={"wiki": "r1"}), user_id="ada")
        for row in ("r1", "r1A", "r"):
            await keep(row, "memory_create", {"path": "/a", "file_text": "é"})
            await keep(row, "memory_create", {"path": "/a", "file_text": "é"}, conversation_id=f"c-{row}")
        await keep("n1", "note_overwrite", {"text": "x"}, conversation_id="c1")
        await keep("t1", "todo_create", {"title": "x"})
        await keep("w1", "wiki_create", {"path": "/p", "content": "x", "title": "p"})
        # What is kept outlives its row.
        await engine.rows.remove("r1", user_id="ada")
        places = await engine.kept.list(user_id="ada", row="r1")
        assert [place.tool for place in places] == ["memory", "memory", "wiki"]
        assert [place.part is None for place in places] == [True, False, True]
        assert {place.size for place in places} == {2}
        assert str(places[1].part).startswith("conversation:")
        before = await rows_in(engine, "ada")
        assert len(await engine.kept.erase(user_id="ada", tool="memory", row="r1")) == 2
        gone = {"memory_files": 2, "memory_history": 2, "text_index": 2, "tool_ledgers": 2}
        assert before - await rows_in(engine, "ada") == gone
        assert [place.tool for place in await engine.kept.list(user_id="ada", row="r1")] == ["wiki"]
        assert len(await engine.kept.erase(user_id="ada", tool="memory")) == 4
        assert [record.tool for record in await exported(engine, "ada")] == ["notes", "todo_list", "wiki"]
        with pytest.raises(NotFound, match="that keeps anything"):
            await engine.kept.erase(user_id="ada", tool="think")
        with pytest.raises(Refused):
            await engine.kept.list(user_id="a\0")
        assert await engine.kept.list(user_id=None) == []


async def sums(store: Any, tool_id: str = "t1") -> tuple[list[Any], list[Any]]:
    """Return a memory's sums as they are kept, and as they are."""
    here = [bound(store, tool_id=tool_id).tenant, tool_id]
    ledger, files, past = light.tool_ledgers.c, light.memory_files.c, light.memory_history.c

    async def one(*columns: Any) -> list[Any]:
        first = columns[0].table if hasattr(columns[0], "table") else None
        table = first if first is not None else columns[-1].clauses.clauses[0].table
        found = await store.read(select(*columns).where(table.c.tenant == here[0], table.c.tool_id == here[1]))
        return [int(value or 0) for value in found[0]] if found else [0] * len(columns)

    kept_sums = await one(ledger.entries, ledger.size, ledger.past)
    real = [*await one(func.count(files.path), func.sum(files.size)), *await one(func.sum(past.size))]
    return kept_sums, real


class Failing:
    """A store whose transactions fail from one on."""

    def __init__(self, store: Any, after: int) -> None:
        self._store = store
        self._left = after
        self.dialect = store.dialect
        self.read: Callable[..., Any] = store.read

    async def transact(self, work: Callable[[Any], Any]) -> Any:
        if not self._left:
            raise LogUnavailable("gone")
        self._left -= 1
        return await self._store.transact(work)


async def test_it_goes_in_steps_and_each_leaves_all_right(journal_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.kept_tables._AT_ONCE", 3)
    monkeypatch.setattr("engine.kept_tables._PAGE", 2)
    async with opened(journal_url) as store:
        run = runner(Memory, store)
        await made(run, *[f"/d{n}/canary" for n in range(8)], text="one")
        await run("memory_create", path="/d1/canary", file_text="two canaries")
        for n in (0, 7):
            await run("memory_delete", path=f"/d{n}/canary")
        everything = [r.content["path"] async for r in Kept(store, TOOLS).export(user_id="ada", history=True)]
        assert len(everything) == 6 + 11
        with pytest.raises(LogUnavailable):
            await Kept(Failing(store, 1), TOOLS).erase(user_id="ada")  # type: ignore[arg-type]
        kept_sums, real = await sums(store)
        assert kept_sums == real == [3, 9, 9 + 6]
        assert await paths_of(run) == ["d4/canary", "d5/canary", "d6/canary"]
        found = await run("memory_search", query="canary")
        assert [f"/d{n}/" in found for n in range(8)] == [n in (4, 5, 6) for n in range(8)]
        (erased,) = await Kept(store, TOOLS).erase(user_id="ada")
        assert (erased.items, erased.versions) == (3, 7)
        assert await run("memory_search", query="canary") == "No file below / has it."
        assert await sums(store) == ([0, 0, 0], [0, 0, 0])


async def test_calls_meanwhile_are_kept_whole_or_not_at_all(journal_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.kept_tables._AT_ONCE", 2)
    async with opened(journal_url) as store:
        files, todos = runner(Memory, store), runner(TodoList, store, tool_id="t2")
        await made(files, *[f"/canary{n}" for n in range(12)])

        async def write(place: int) -> None:
            for n in range(4):
                await files("memory_create", path=f"/canary{place}-{n}", file_text="x" * n)
                await files("memory_delete", path=f"/canary{place}-{n - 1}")
                await todos("todo_create", title=f"{place} {n}")

        async def erase() -> None:
            for _ in range(3):
                await Kept(store, TOOLS).erase(user_id="ada")

        async with anyio.create_task_group() as tasks:
            for place in range(3):
                tasks.start_soon(write, place)
            tasks.start_soon(erase)
        kept_sums, real = await sums(store)
        assert kept_sums == real
        there = await paths_of(files)
        found = await files("memory_search", query="canary")
        assert all(path in found for path in there)
        assert found.count("/canary") == len(there)
        await Kept(store, TOOLS).erase(user_id="ada")
        tenant = tenant_column("ada")
        for table in (light.tool_ledgers, light.text_index, light.memory_history, light.todo_history, light.todos):
            assert await store.read(select(table).where(table.c.tenant == tenant)) == []
