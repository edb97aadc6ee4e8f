"""``notes``: literal edits, no lost updates, one note per user and row, on a real database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from sqlalchemy import select, update

from engine.note_limits import LARGEST, NOTES, VERSIONS
from engine.schema import note_history
from engine.tool_schema import tool_ledgers
from engine.tools.notes import Notes
from tests.engine.tools.keeping import Run, failure, opened, start
from tests.engine.tools.keeping import runner as kept

pytestmark = pytest.mark.anyio


def runner(store: Any, user: str = "ada", tool_id: str = "t1") -> Run:
    return kept(Notes, store, user, tool_id)


async def test_a_note_is_written_read_and_deleted(journal_url: str) -> None:
    async with opened(journal_url) as store:
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


async def test_a_note_outlives_the_engine_and_belongs_to_one_user_and_row(journal_url: str) -> None:
    async with opened(journal_url) as store:
        await runner(store)("note_overwrite", text="ada's")
        await runner(store, tool_id="t2")("note_overwrite", text="ada's second")
    async with opened(journal_url) as store:
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
async def test_replacing_is_literal_and_unique(sqlite_url: str, old: str, new: str, result: str | None) -> None:
    async with opened(sqlite_url) as store:
        run = runner(store)
        before = r"path C:\old, Cat concatenate"
        await run("note_overwrite", text=before)
        outcome = await run("note_str_replace", old_str=old, new_str=new)
        if result is None:
            assert failure(outcome)
        assert await run("note_view") == (before if result is None else result)


async def test_several_places_are_replaced_only_when_asked(sqlite_url: str) -> None:
    async with opened(sqlite_url) as store:
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
    sqlite_url: str, action: str, arguments: dict[str, Any], said: str
) -> None:
    async with opened(sqlite_url) as store:
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
async def test_lines_are_inserted(sqlite_url: str, before: str, line: int, text: str, after: str) -> None:
    async with opened(sqlite_url) as store:
        run = runner(store)
        await run("note_overwrite", text="x")
        await run("note_str_replace", old_str="x", new_str=before)
        await run("note_insert", line_number=line, text=text)
        assert await run("note_view") == after


async def test_a_note_can_become_empty_and_grow_again(sqlite_url: str) -> None:
    async with opened(sqlite_url) as store:
        run = runner(store)
        await run("note_overwrite", text="x")
        await run("note_str_replace", old_str="x", new_str="")
        assert await run("note_view") == ""
        assert await run("note_insert", line_number=1, text="new") == "Text inserted."
        assert await run("note_view") == "new"


async def test_text_that_no_database_stores_is_made_storable(journal_url: str) -> None:
    async with opened(journal_url) as store:
        run = runner(store)
        await run("note_overwrite", text="a\x00b\ud800c")
        assert await run("note_view") == "ab\ufffdc"


async def test_no_update_is_lost_between_two_engines(journal_url: str) -> None:
    async with opened(journal_url) as first, opened(journal_url) as second:
        await runner(first)("note_overwrite", text="top")
        async with anyio.create_task_group() as tasks:
            for number in range(8):
                for name, store in (("a", first), ("b", second)):
                    start(tasks, runner(store), "note_insert", line_number=1, text=f"{name}{number}")
        lines = (await runner(first)("note_view")).split("\n")
        assert sorted(lines) == sorted([*(f"{name}{number}" for number in range(8) for name in "ab"), "top"])
        assert await runner(first)("note_view") == await runner(second)("note_view")


async def test_of_two_that_begin_a_note_the_later_overwrites(journal_url: str) -> None:
    async with opened(journal_url) as first, opened(journal_url) as second:
        async with anyio.create_task_group() as tasks:
            for number in range(6):
                run = runner(first if number % 2 else second)
                start(tasks, run, "note_overwrite", text=f"text {number}")
        assert (await runner(first)("note_view")).startswith("text ")
        assert len(await history(first)) == 6


async def history(store: Any) -> Sequence[Any]:
    columns = note_history.c
    return list(await store.read(select(columns.version, columns.content, columns.by_call).order_by(columns.version)))


async def test_the_history_says_what_the_note_said_and_which_call_wrote_it(journal_url: str) -> None:
    async with opened(journal_url) as store:
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


async def test_the_history_is_bounded(sqlite_url: str) -> None:
    async with opened(sqlite_url) as store:
        run = runner(store)
        for number in range(VERSIONS + 5):
            await run("note_overwrite", text=f"n{number}")
        rows = await history(store)
        assert [row[0] for row in rows] == list(range(6, VERSIONS + 6))


async def test_several_notes_have_titles_and_their_own_versions(journal_url: str) -> None:
    async with opened(journal_url) as store:
        run = runner(store)
        assert await run("note_list") == "No notes found."
        await run("note_overwrite", text="milk")
        assert await run("note_append", title="Plan_%", text="one\n") == "Text appended."
        assert await run("note_append", title=" Plan_% ", text="two") == "Text appended."
        assert await run("append", text="eggs") == "Text appended."
        assert await run("note_view", title="Plan_%") == "one\ntwo\n"
        assert await run("note_view", title="Plan_%", view_range=[2, -1]) == "2: two"
        assert failure(await run("note_view", title="plan_%")) == "No note found."
        listed = (await run("note_list")).split("\n")
        assert [line.partition(",")[0] for line in listed] == ["Notes:", "- Plan_% (version 2", "- note (version 2"]
        assert "Plan_%" not in await run("note_list", after="Plan_%")
        assert await run("note_delete", title="Plan_%") == "Note deleted."
        assert await run("note_view") == "milk\neggs"
        for title in ("", "a\nb", "x" * 201, 5):
            assert "title" in failure(await run("note_view", title=title))


async def test_a_change_may_ask_for_the_version_that_was_seen(sqlite_url: str) -> None:
    async with opened(sqlite_url) as store:
        run = runner(store)
        assert await run("note_overwrite", text="a", expected_version=0) == "Note saved."
        assert "it is at version 1" in failure(await run("note_overwrite", text="b", expected_version=0))
        assert await run("note_append", text="b", expected_version=1) == "Text appended."
        for action, arguments in (
            ("note_str_replace", {"old_str": "a", "new_str": "c"}),
            ("note_insert", {"line_number": 1, "text": "c"}),
            ("note_delete", {}),
            ("note_undo", {}),
        ):
            assert "it is at version 2" in failure(await run(action, expected_version=1, **arguments))
        assert await run("note_view") == "a\nb"
        assert "is not there" in failure(await run("note_append", title="x", text="b", expected_version=3))


async def test_changes_are_undone_and_versions_listed(journal_url: str) -> None:
    async with opened(journal_url) as store:
        run = runner(store)
        assert failure(await run("note_undo")) == "No note found."
        assert failure(await run("note_history")) == "No note found."
        await run("note_overwrite", key="m1:a", text="one")
        assert "Nothing to undo" in failure(await run("note_undo"))
        await run("note_overwrite", key="m1:b", text="two")
        assert await run("note_undo") == "Note restored: it says what it said at version 1."
        assert await run("note_view") == "one"
        assert await run("note_undo") == "Note restored: it says what it said at version 2."
        assert await run("note_view") == "two"
        await run("note_delete")
        assert await run("note_search", query="two") == "No note has it."
        assert await run("note_undo", key="m1:u") == "Note restored: it says what it said at version 4."
        assert await run("note_view") == "two"
        assert await run("note_undo", version=1) == "Note restored: it says what it said at version 1."
        assert "Version 99 of the note is not kept" in failure(await run("note_undo", version=99))
        listed = (await run("note_history")).split("\n")
        assert [line[:12] for line in listed[1:]] == [f"- version {number}:" for number in range(6, 0, -1)]
        assert listed[-1].endswith("by call m1:a")


SEARCHED = {
    "shopping": "Milch\nKÄSE 50% off\n",
    "Käse": "x",
    "a_b": "nothing",
    "axb": "C:\\temp\\1",
    "long": "z" * 600 + " needle at the seam of two parts of this text " + "z" * 480 + "Ende",
}


FOUND: dict[str, list[str]] = {
    "käse": ["Käse", "shopping"],
    "50%": ["shopping"],
    "5_%": [],
    "a_b": ["a_b"],
    "C:\\TEMP": ["axb"],
    "seam of two": ["long"],
    "zende": ["long"],
    "Z" * 300: ["long"],
    "milch\nkäse": ["shopping"],
    "x": ["axb", "Käse", "long"],
    ".*": [],
}


async def test_notes_are_found_by_any_piece_in_any_case(journal_url: str) -> None:
    async with opened(journal_url) as store:
        run = runner(store)
        for title, text in SEARCHED.items():
            await run("note_overwrite", title=title, text=text)
        for query, titles in FOUND.items():
            lines = (await run("note_search", query=query)).split("\n")
            found = [line.removeprefix("- ").partition(" (line")[0] for line in lines if line.startswith("-")]
            assert found == titles, query


async def test_what_is_shown_of_a_search_is_bounded(sqlite_url: str) -> None:
    async with opened(sqlite_url) as store:
        run = runner(store)
        for number in range(4):
            await run("note_overwrite", title=f"n{number}", text=f"{'x' * 500} needle {'y' * 500}")
        said = await run("note_search", query="needle", limit=3)
        assert said.endswith("(there are more)")
        assert len(said) < 1000
        assert "... x" not in said
        assert failure(await run("note_search", query=" ")) == "query is required."


async def test_an_error_says_where_the_piece_is(sqlite_url: str) -> None:
    async with opened(sqlite_url) as store:
        run = runner(store)
        await run("note_overwrite", text="aaa\nMilk  and eggs")
        assert "occurs 2 times in note (line 1: 'aaa'; line 1: 'aaa')" in failure(
            await run("note_str_replace", old_str="aa", new_str="b")
        )
        said = failure(await run("note_str_replace", old_str="milk and", new_str="b"))
        assert said == (
            "String 'milk and' not found in note. Line 2 differs only in case or white space: 'Milk  and eggs'"
        )


async def test_there_are_so_many_notes_and_no_more(sqlite_url: str) -> None:
    async with opened(sqlite_url) as store:
        run = runner(store)
        await run("note_overwrite", title="first", text="x")
        await store.write([update(tool_ledgers).values(entries=NOTES)])
        assert f"at most {NOTES}" in failure(await run("note_overwrite", title="second", text="x"))
        assert await run("note_overwrite", title="first", text="y") == "Note saved."
        assert await run("note_delete", title="first") == "Note deleted."
        assert await run("note_overwrite", title="second", text="x") == "Note saved."
