"""``memory``: paths, files, directories, quotas and search, on a real database."""

from __future__ import annotations

from typing import Any

import pytest

from engine.memory_limits import FILES, LARGEST, LISTED, MemoryLimits
from tests.engine.tools.keeping import failure, opened
from tests.engine.tools.memories import content_of, made, paths_of, runner

__all__ = ()

pytestmark = pytest.mark.anyio


async def test_files_are_made_read_changed_moved_and_deleted(journal_url: str) -> None:
    async with opened(journal_url) as store:
        run = runner(store)
        assert await run("memory_view", path="/") == "Directory: /\n(empty)"
        assert await run("memory_create", path="a/b.md", file_text="one\ntwo") == "File created: /a/b.md"
        assert await run("create", path="/a/./b.md", file_text="  one\ntwo\n") == "File updated: /a/b.md"
        assert await content_of(run, " /a/b.md ") == "  one\ntwo\n"
        assert "\n2: two\n" in await run("memory_view", path="/a/b.md", view_range=[2, -1])
        assert await run("memory_str_replace", path="/a/b.md", old_str="two", new_str=r"\1 C:\n") == (
            "File updated: /a/b.md"
        )
        assert await run("memory_insert", path="/a/b.md", insert_line=1, insert_text="0") == (
            "Text inserted at line 1 in /a/b.md"
        )
        assert await content_of(run, "/a/b.md") == "0\n  one\n\\1 C:\\n\n"
        assert await run("memory_rename", old_path="/a/b.md", new_path="/c.md") == "Renamed: /a/b.md -> /c.md"
        assert await run("memory_view", path="/") == "Directory: /\n- c.md"
        assert await run("memory_delete", path="/c.md") == "Deleted: /c.md"
        assert failure(await run("memory_view", path="/c.md")) == "Error: File not found: /c.md"
        assert failure(await run("memory_delete", path="/c.md")) == "Error: File not found: /c.md"


async def test_an_empty_file_is_a_file(journal_url: str) -> None:
    async with opened(journal_url) as store:
        run = runner(store)
        await made(run, "/empty", text="")
        assert await content_of(run, "/empty") == "(empty)"
        assert "Line range out of bounds" in failure(await run("memory_view", path="/empty", view_range=[1, -1]))
        assert await run("memory_insert", path="/empty", insert_line=1, insert_text="x") == (
            "Text inserted at line 1 in /empty"
        )
        assert await run("memory_str_replace", path="/empty", old_str="x", new_str="") == "File updated: /empty"
        assert await run("memory_delete", path="/empty") == "Deleted: /empty"


PATHS: list[tuple[Any, str | None]] = [
    ("/a..b.txt", None),
    ("/..a/b..", None),
    ("x/./y", None),
    ("/ünïcode/日本 語", None),
    ("/a%b_c'\"", None),
    ("/a/../b", "'..' segment"),
    ("..", "'..' segment"),
    ("/a//b", "empty segment"),
    ("/a\\b", "backslash"),
    ("/a\x00b", "control characters"),
    ("/a\nb", "control characters"),
    ("/a\u202eb", "control characters"),
    ("/a\ud800", "control characters"),
    ("/a /b", "begins or ends with a space"),
    ("", "empty"),
    ("  ", "empty"),
    ("/" + "x" * 400, "401 characters"),
    (5, "must be text"),
    (None, "must be text"),
    (["/a"], "must be text"),
    ("/", "Cannot create a file at directory path"),
    ("/a/", "Cannot create a file at directory path"),
    ("/a/.", "Cannot create a file at directory path"),
]


async def test_paths_are_safe(sqlite_url: str) -> None:
    async with opened(sqlite_url) as store:
        run = runner(store)
        for path, said in PATHS:
            outcome = await run("memory_create", path=path, file_text="x")
            if said is None:
                assert str(outcome).startswith("File created: /")
                assert await content_of(run, path) == "x"
                assert str(await run("memory_delete", path=path)).startswith("Deleted: /")
                continue
            assert said in failure(outcome)
            assert failure(outcome).startswith("Error: ")
            assert await paths_of(run) == []
            if "directory path" not in said:
                for name in ("view", "delete", "restore", "history"):
                    assert "Error: Invalid path: " in failure(await run(f"memory_{name}", path=path))
                for pair in ({"old_path": path, "new_path": "/n"}, {"old_path": "/n", "new_path": path}):
                    assert "Error: Invalid path: " in failure(await run("memory_rename", **pair))


async def test_one_spelling_of_each_path(sqlite_url: str) -> None:
    async with opened(sqlite_url) as store:
        run = runner(store)
        await made(run, "/caf\u00e9")
        assert await run("memory_create", path="cafe\u0301", file_text="y") == "File updated: /caf\u00e9"


async def test_no_path_matches_another_by_wildcards(journal_url: str) -> None:
    async with opened(journal_url) as store:
        run = runner(store)
        await made(run, "/my_dir/a", "/myXdir/b", "/my%/c", "/my_dirt", "/my_dir0", "/MY_DIR/d")
        assert await run("memory_view", path="/my_dir") == "Directory: /my_dir/\n- a"
        assert await run("memory_rename", old_path="/my_dir", new_path="/new") == (
            "Renamed directory: /my_dir/ -> /new/ (1 files)"
        )
        assert await run("memory_delete", path="/my%/") == "Deleted directory and 1 file(s)."
        assert await paths_of(run) == ["MY_DIR/d", "myXdir/b", "my_dir0", "my_dirt", "new/a"]


async def test_a_file_and_a_directory_never_share_a_name(journal_url: str) -> None:
    async with opened(journal_url) as store:
        run = runner(store)
        await made(run, "/a/b", "/f", "/g/x")
        assert "/a/ is a directory" in failure(await run("memory_create", path="/a", file_text="x"))
        assert "/f is a file" in failure(await run("memory_create", path="/f/x/y", file_text="x"))
        assert "/a/ is a directory" in failure(await run("memory_rename", old_path="/f", new_path="/a"))
        assert "/f is a file" in failure(await run("memory_rename", old_path="/a/b", new_path="/f/b"))
        assert "/f is a file" in failure(await run("memory_rename", old_path="/f", new_path="/f/b"))
        assert "File already exists at /f" in failure(await run("memory_rename", old_path="/a", new_path="/f"))
        assert "File already exists at /g/x" in failure(await run("memory_rename", old_path="/a", new_path="/g"))
        assert "File already exists at /a/b" in failure(await run("memory_rename", old_path="/f", new_path="/a/b"))
        assert "lies within it" in failure(await run("memory_rename", old_path="/a", new_path="/a/c"))
        assert "lies within it" in failure(await run("memory_rename", old_path="/a/", new_path="/a/"))
        assert await paths_of(run) == ["a/b", "f", "g/x"]
        assert "/f is a file" in failure(await run("memory_view", path="/f/"))


async def test_a_directory_goes_only_when_that_is_meant(journal_url: str) -> None:
    async with opened(journal_url) as store:
        run = runner(store)
        await made(run, "/d/a", "/d/e/b", "/f")
        assert "is a directory of 2 file(s)" in failure(await run("memory_delete", path="/d"))
        assert failure(await run("memory_delete", path="/f/")) == "Error: Directory not found: /f/"
        assert failure(await run("memory_delete", path="/none/")) == "Error: Directory not found: /none/"
        assert failure(await run("memory_delete", path="/none", recursive=True)) == "Error: File not found: /none"
        assert "recursive" in failure(await run("memory_delete", path="/"))
        assert await paths_of(run) == ["d/a", "d/e/b", "f"]
        assert await run("memory_delete", path="/d", recursive=True) == "Deleted directory and 2 file(s)."
        await made(run, "/d/a")
        assert await run("memory_delete", path="/d/") == "Deleted directory and 1 file(s)."
        assert await run("memory_delete", path="/f", recursive=True) == "Deleted: /f"
        assert await run("memory_delete", path="/", recursive=True) == "Deleted 0 file(s) from memory."


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("memory_create", {"path": "/x"}, "file_text must be text."),
    ("memory_create", {"path": "/x", "file_text": "é" * LARGEST}, f"at most {LARGEST} are kept"),
    ("memory_str_replace", {"path": "/f", "old_str": "", "new_str": "x"}, "old_str is required."),
    ("memory_str_replace", {"path": "/f", "old_str": "one"}, "new_str must be text."),
    ("memory_str_replace", {"path": "/f", "old_str": "ONE", "new_str": ""}, "String 'ONE' not found in file."),
    ("memory_str_replace", {"path": "/f", "old_str": "o", "new_str": ""}, "occurs 2 times in file (line 1: 'one'"),
    ("memory_str_replace", {"path": "/n", "old_str": "o", "new_str": ""}, "File not found: /n"),
    ("memory_insert", {"path": "/f", "insert_line": 4, "insert_text": "x"}, "Invalid line number. File has 2"),
    ("memory_insert", {"path": "/f", "insert_line": "1", "insert_text": "x"}, "must be a whole number"),
    ("memory_insert", {"path": "/f", "insert_line": 1, "insert_text": ""}, "insert_text is required."),
    ("memory_insert", {"path": "/n", "insert_line": 1, "insert_text": "x"}, "File not found: /n"),
    ("memory_view", {"path": "/f", "view_range": [3, -1]}, "Line range out of bounds. File has 2 lines."),
    ("memory_view", {"path": "/f", "view_range": [2, 1]}, "Line range out of bounds. File has 2 lines."),
    ("memory_view", {"path": "/f", "view_range": ["1", 2]}, "view_range must be two whole numbers"),
    ("memory_view", {"path": "/f", "view_range": [1]}, "view_range must be two whole numbers"),
    ("memory_rename", {"old_path": "/n", "new_path": "/m"}, "File not found: /n"),
    ("memory_rename", {"old_path": "/n/", "new_path": "/m"}, "Directory not found: /n/"),
    ("memory_rename", {"old_path": "/", "new_path": "/m"}, "Cannot rename root directory"),
    ("memory_rename", {"old_path": "/f", "new_path": "/m/"}, "Cannot create a file at directory path"),
    ("memory_search", {"query": " "}, "query is required."),
    ("memory_restore", {"path": "/n"}, "Nothing is kept of /n."),
    ("memory_restore", {"path": "/n/"}, "Nothing is kept of /n/."),
    ("memory_restore", {"path": "/f"}, "/f is there; say which version"),
    ("memory_restore", {"path": "/f", "version": 9}, "Nothing is kept of version 9 of /f."),
    ("memory_delete", {"path": "/f", "expected_version": 2}, "/f is at version 1, expected_version is 2."),
    ("memory_create", {"path": "/f", "file_text": "", "expected_version": 0}, "/f is at version 1"),
    ("memory_create", {"path": "/n", "file_text": "", "expected_version": 1}, "/n is not there"),
    ("memory_rename", {"old_path": "/f", "new_path": "/m", "expected_version": 3}, "/f is at version 1"),
    ("memory_burn", {}, "Unknown action: memory_burn"),
]


async def test_what_cannot_be_done_is_said_and_changes_nothing(sqlite_url: str) -> None:
    async with opened(sqlite_url) as store:
        run = runner(store)
        await made(run, "/f", text="one\ntwo\n")
        for action, arguments, said in REFUSED:
            assert said in failure(await run(action, **arguments)), action
            assert await content_of(run, "/f") == "one\ntwo\n"
            assert await paths_of(run) == ["f"]


async def test_quotas_hold_and_a_row_lowers_them(journal_url: str) -> None:
    async with opened(journal_url) as store:
        run = runner(store, max_files=2, max_file_bytes=10, max_bytes=15)
        await made(run, "/a", text="é" * 5)
        longer = await run("memory_str_replace", path="/a", old_str="ééééé", new_str="x" * 11)
        assert "it would have 11 bytes, at most 10" in failure(longer)
        assert "would have 16 bytes, at most 15" in failure(await run("memory_create", path="/b", file_text="x" * 6))
        await made(run, "/b", text="x" * 5)
        assert "Too many files: at most 2" in failure(await run("memory_create", path="/c", file_text=""))
        assert await run("memory_rename", old_path="/b", new_path="/c") == "Renamed: /b -> /c"
        assert await run("memory_delete", path="/a") == "Deleted: /a"
        await made(run, "/d", text="x" * 10)
        assert "Too many files" in failure(await run("memory_restore", path="/a"))
        assert await run("memory_delete", path="/", recursive=True) == "Deleted 2 file(s) from memory."
        assert await run("memory_restore", path="/") == "Restored 2 file(s) below /."
        assert await run("memory_delete", path="/c") == "Deleted: /c"
        assert "Memory full" in failure(await run("memory_create", path="/e", file_text="x" * 6))
    assert MemoryLimits.of({"max_files": FILES + 1, "max_bytes": 0, "max_file_bytes": "5"}) == MemoryLimits()


SEARCHED = {
    "/plans/needle.md": "nothing of the kind",
    "/needle/x.md": "nor here",
    "/a.md": "A Needle in a\nHAYSTACK_50%",
    "/b.md": "haystack without",
    "/ÄRGER.md": "Größe",
}


FOUND: dict[str, list[str]] = {
    "needle": ["/plans/needle.md", "/needle/x.md", "/a.md"],
    "NEEDLE.MD": ["/plans/needle.md"],
    "haystack_50%": ["/a.md"],
    "%": ["/a.md"],
    "ärger": ["/ÄRGER.md"],
    "GRÖSSE": ["/ÄRGER.md"],
    "in a\nhaystack": ["/a.md"],
    ".md": ["/a.md", "/b.md", "/needle/x.md", "/plans/needle.md", "/ÄRGER.md"],
    "here": ["/needle/x.md"],
    "absent": [],
}


async def test_files_are_found_by_name_then_path_then_content(journal_url: str) -> None:
    async with opened(journal_url) as store:
        run = runner(store)
        for path, text in SEARCHED.items():
            await made(run, path, text=text)
        for query, paths in FOUND.items():
            lines = (await run("memory_search", query=query)).split("\n")
            assert [line[2:].partition(" (line")[0] for line in lines if line.startswith("- ")] == paths, query
        assert "- /a.md (line 2): HAYSTACK_50%" in await run("memory_search", query="stack_")
        assert "there are more" in await run("memory_search", query="needle", limit=2)
        assert (await run("memory_search", query="needle", path="/needle")).count("\n- ") == 1
        await run("memory_create", path="/a.md", file_text="changed")
        assert "/a.md" not in await run("memory_search", query="haystack_50")


async def test_names_come_first_however_many_contents_have_it(journal_url: str) -> None:
    """Beyond 256 texts the names are looked through by the database, which knows the case of ASCII alone."""
    async with opened(journal_url) as store:
        run = runner(store)
        await made(run, *(f"/d/{number}" for number in range(258)), text="Die Straße, the 50% of it_all")
        await made(run, "/z/STRASSE", "/z/straße 2", "/z/50% of", "/z/5000 of", text="")
        for query, first in (
            ("straße", ["/z/STRASSE", "/z/straße 2"]),
            ("50% OF", ["/z/50% of"]),
            ("it_all", []),
        ):
            lines = (await run("memory_search", query=query)).split("\n")
            found = [line[2:].partition(" (line")[0] for line in lines if line.startswith("- ")]
            assert found[: len(first)] == first, query
            assert all(path.startswith("/d/") for path in found[len(first) :]), query
            assert len(found) == 50


async def test_a_long_listing_comes_in_pages(sqlite_url: str) -> None:
    async with opened(sqlite_url) as store:
        run = runner(store)
        names = [f"f{number:03}" for number in range(LISTED + 1)]
        await made(run, *(f"/d/{name}" for name in names), text="")
        said = await run("memory_view", path="/d")
        assert said.endswith(f"(there are more; list them with after: /d/{names[-2]})")
        assert await run("memory_view", path="/d", after=f"/d/{names[-2]}") == f"Directory: /d/\n- {names[-1]}"


async def test_a_fence_cannot_be_forged(sqlite_url: str) -> None:
    async with opened(sqlite_url) as store:
        run = runner(store)
        await made(run, "/f", text="x")
        first = await run("memory_view", path="/f")
        await run("memory_create", path="/f", file_text=first)
        assert await content_of(run, "/f") == first


async def test_text_that_no_database_stores_is_made_storable(journal_url: str) -> None:
    async with opened(journal_url) as store:
        run = runner(store)
        await made(run, "/f", text="a\x00b\ud800c\r\nd")
        assert await content_of(run, "/f") == "ab\ufffdc\r\nd"
        assert (await run("memory_search", query="b\ufffdC")).count("\n- /f") == 1
