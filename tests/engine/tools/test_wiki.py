"""``wiki`` on a real database: literal edits of versions that were read, and nothing is overwritten."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from engine.wiki.limits import LARGEST, LINKS
from tests.engine.wiki.wikis import (
    everything,
    failure,
    filled,
    lines_of,
    opened,
    pages,
    runner,
    said,
    text_of,
)

pytestmark = pytest.mark.anyio


async def test_a_page_is_begun_edited_and_deleted(database_url: str) -> None:
    async with opened(database_url) as store:
        run = runner(store)
        assert await run("wiki_list") == "Directory: /\n(empty)"
        assert await run("wiki_create", path="guide/setup", content="one\ntwo\n", title=" Set\nup ") == (
            "Page created: /guide/setup\nVersion: 1"
        )
        seen = (await run("wiki_view", path="/guide/setup")).split("\n")
        assert seen[:3] == ["Page: /guide/setup", "Version: 1", "Lines: 2"]
        assert seen[4].endswith(" title: Set up")
        assert seen[5:7] == ["one", "two"]
        edit = {"path": "/guide/setup", "expected_version": 1}
        assert await run("wiki_insert", **edit, insert_line=3, insert_text="three") == (
            "Text inserted at line 3 in /guide/setup\nVersion: 2"
        )
        edit["expected_version"] = 2
        assert await run("str_replace", **edit, old_str="two", new_str="2") == "Page updated: /guide/setup\nVersion: 3"
        assert text_of(await run("view", path="/guide/setup", view_range=[2, -1])) == "2: 2\n3: three"
        edit["expected_version"] = 3
        assert await run("wiki_write", **edit, content="all new") == "Page updated: /guide/setup\nVersion: 4"
        assert " title: Set up\nall new\n" in await run("wiki_view", path="/guide/setup")
        assert await run("wiki_delete", path="/guide/setup") == "Deleted: /guide/setup"
        assert failure(await run("wiki_view", path="/guide/setup")) == "Error: Page not found: /guide/setup"
        assert await pages(run) == []
        # Whoever still has the old page in mind cannot write over the new one.
        assert (
            await run("wiki_create", path="/guide/setup", content="again") == "Page created: /guide/setup\nVersion: 6"
        )
        assert " title: setup\n" in await run("wiki_view", path="/guide/setup")


WRONG: Sequence[tuple[str, dict[str, Any], str]] = (
    ("wiki_view", {"path": "/none"}, "Page not found: /none"),
    ("wiki_view", {"path": "/none/"}, "Directory not found: /none/"),
    ("wiki_view", {"path": "/p", "version": 7}, "Page /p has no version 7"),
    ("wiki_view", {"path": "/p", "view_range": [0, 1]}, "Line range out of bounds. Page has 2 lines."),
    ("wiki_view", {"path": "/p", "view_range": [3, 4]}, "Line range out of bounds. Page has 2 lines."),
    ("wiki_view", {"path": "/p", "view_range": ["1", "2"]}, "view_range must be two whole numbers"),
    ("wiki_view", {"path": 5}, "Invalid path"),
    ("wiki_view", {"path": "/a/../p"}, "Invalid path"),
    ("wiki_view", {}, "Invalid path"),
    ("wiki_list", {"prefix": "/none/"}, "Directory not found: /none/"),
    ("wiki_list", {"limit": 0}, "limit must be a whole number"),
    ("wiki_history", {"path": "/none"}, "Page not found: /none"),
    ("wiki_diff", {"path": "/p", "from": 1, "to": 9}, "Page /p has no version 9"),
    ("wiki_diff", {"path": "/p"}, "from is required"),
    ("wiki_search", {"text": ""}, "text is required"),
    ("wiki_search", {"text": "\0"}, "text is required"),
    ("wiki_create", {"path": "/p", "content": "x"}, "Page already exists at /p; nothing was overwritten"),
    ("wiki_create", {"path": "/p/below", "content": "x"}, "Page already exists at /p, so it cannot be a directory"),
    ("wiki_create", {"path": "/d", "content": "x"}, "Page already exists below /d/"),
    ("wiki_create", {"path": "/new/", "content": "x"}, "Invalid path: /new/ is a directory"),
    ("wiki_create", {"path": "/", "content": "x"}, "Invalid path"),
    ("wiki_create", {"path": "/new"}, "content must be text."),
    ("wiki_create", {"path": "/new", "content": "x", "title": "t" * 201}, "title is too long"),
    ("wiki_create", {"path": "/new", "content": "\u00e9" * (LARGEST // 2) + "x"}, f"at most {LARGEST} are kept"),
    ("wiki_create", {"path": "/new", "content": "".join(f"[[p{n}]]" for n in range(LINKS + 1))}, "Page has links to"),
    ("wiki_write", {"path": "/p", "content": "x"}, "expected_version is required"),
    ("wiki_write", {"path": "/none", "content": "x", "expected_version": 1}, "Page not found: /none"),
    ("wiki_write", {"path": "/p", "content": "x", "expected_version": 2}, "Page changed since it was read: /p is at "),
    ("wiki_write", {"path": "/p", "content": "x", "expected_version": True}, "expected_version must be a whole number"),
    ("wiki_write", {"path": "/p", "content": "x", "expected_version": 10**30}, "Page changed since it was read"),
    ("wiki_str_replace", {"old_str": "ONE", "new_str": "x"}, "String 'ONE' not found in page. Line 1 differs only in"),
    ("wiki_str_replace", {"old_str": "e", "new_str": "x"}, "String 'e' occurs 2 times in page (line 1; line 2). Give"),
    ("wiki_str_replace", {"old_str": "", "new_str": "x"}, "old_str is required"),
    ("wiki_insert", {"insert_line": 4, "insert_text": "x"}, "Invalid line number. Page has 2 lines."),
    ("wiki_insert", {"insert_line": 0, "insert_text": "x"}, "Invalid line number. Page has 2 lines."),
    ("wiki_insert", {"insert_line": "1", "insert_text": "x"}, "insert_line must be a whole number"),
    ("wiki_insert", {"insert_line": 1, "insert_text": ""}, "Text is required."),
    ("wiki_restore", {"path": "/p", "version": 9}, "Page /p has no version 9"),
    ("wiki_restore", {"path": "/p"}, "version is required"),
    ("wiki_restore", {"path": "/gone", "version": 2}, "Version 2 of /gone has no text"),
    ("wiki_restore", {"path": "/p", "version": 1, "expected_version": 8}, "Page changed since it was read"),
    ("wiki_delete", {"path": "/"}, "Cannot delete the wiki root."),
    ("wiki_delete", {"path": "/", "recursive": True}, "Cannot delete the wiki root."),
    ("wiki_delete", {"path": "/d"}, "/d/ is a directory of 2 page(s); set recursive"),
    ("wiki_delete", {"path": "/d/"}, "/d/ is a directory of 2 page(s); set recursive"),
    ("wiki_delete", {"path": "/none"}, "Page not found: /none"),
    ("wiki_delete", {"path": "/p/", "recursive": True}, "Directory not found: /p/"),
    ("wiki_delete", {"path": "/p", "expected_version": 3}, "Page changed since it was read"),
    ("wiki_rename", {"old_path": "/", "new_path": "/x"}, "Cannot rename the wiki root"),
    ("wiki_rename", {"old_path": "/d/", "new_path": "/"}, "Cannot rename the wiki root"),
    ("wiki_rename", {"old_path": "/none", "new_path": "/x"}, "Page not found: /none"),
    ("wiki_rename", {"old_path": "/p/", "new_path": "/x"}, "Directory not found: /p/"),
    ("wiki_rename", {"old_path": "/p", "new_path": "/p"}, "Invalid path: old_path and new_path are the same"),
    ("wiki_rename", {"old_path": "/p", "new_path": "/x/"}, "Invalid path: /x/ is a directory"),
    ("wiki_rename", {"old_path": "/p", "new_path": "/d/a"}, "Page already exists at /d/a"),
    ("wiki_rename", {"old_path": "/p", "new_path": "/d"}, "Page already exists below /d/"),
    ("wiki_rename", {"old_path": "/d", "new_path": "/p"}, "Page already exists at /p"),
    ("wiki_rename", {"old_path": "/d", "new_path": "/p/d"}, "Page already exists at /p, so"),
    ("wiki_rename", {"old_path": "/d/", "new_path": "/d/e"}, "Invalid path: /d/ cannot be moved into itself"),
    ("wiki_rename", {"old_path": "/d/", "new_path": "/" + "x" * 510}, "Invalid path: some page's path would be"),
    ("wiki_burn", {}, "Unknown action: wiki_burn"),
)


async def test_what_cannot_be_done_is_said_and_changes_nothing(tmp_path: Any) -> None:
    async with opened(f"sqlite:///{tmp_path}/w.db") as store:
        run = runner(store)
        await filled(run, p="one\ntwo the\n", d__a="", d__b="", gone="x")
        await run("wiki_delete", path="/gone")
        edited = {"path": "/p", "expected_version": 1}
        before = await everything(store)
        for action, arguments, wrong in WRONG:
            if action in ("wiki_str_replace", "wiki_insert"):
                arguments = {**edited, **arguments}
            found = failure(await run(action, **arguments))
            assert found.startswith(f"Error: {wrong}" if wrong[0].isupper() else "Error: "), (action, arguments)
            assert wrong in found, (action, arguments)
        assert await everything(store) == before


async def test_what_is_replaced_is_taken_literally(database_url: str) -> None:
    async with opened(database_url) as store:
        run = runner(store)
        await filled(run, p="Cat concatenate (a+) C:\\old \\1 %s a\x00b\ud800c\n")
        assert await said(run, "/p") == "Cat concatenate (a+) C:\\old \\1 %s ab\ufffdc\n"
        version = 1
        for old, new in (("(a+)", "\\1\\g<0>\\n"), ("C:\\old", "C:\\path"), ("Cat", "Dog"), ("%s", "%d {0}")):
            edit = {"path": "/p", "expected_version": version, "old_str": old, "new_str": new}
            assert await run("wiki_str_replace", **edit) == f"Page updated: /p\nVersion: {version + 1}"
            version += 1
        assert await said(run, "/p") == "Dog concatenate \\1\\g<0>\\n C:\\path \\1 %d {0} ab\ufffdc\n"
        await run("wiki_str_replace", path="/p", expected_version=5, old_str="at", new_str="", replace_all=True)
        assert await said(run, "/p") == "Dog concene \\1\\g<0>\\n C:\\ph \\1 %d {0} ab\ufffdc\n"


async def test_nothing_in_a_path_is_a_wildcard(database_url: str) -> None:
    async with opened(database_url) as store:
        run = runner(store)
        await filled(run, my_dir__a="", myXdir__a="", my_dirs__a="")
        await run("wiki_create", path="/100%/a", content="")
        await run("wiki_create", path="/100 %/a", content="")
        assert lines_of(await run("wiki_list", prefix="/my_dir/")) == ["- /my_dir/a: a"]
        assert len(lines_of(await run("wiki_list", prefix="/my_dir"))) == 2
        assert "Directory not found: /%/" in failure(await run("wiki_delete", path="/%/", recursive=True))
        assert await run("wiki_delete", path="/my_dir/", recursive=True) == "Deleted directory and 1 page(s)."
        assert await run("wiki_rename", old_path="/100%/", new_path="/all") == (
            "Renamed directory: /100%/ -> /all/ (1 pages)"
        )
        assert await pages(run) == ["/100 %/a", "/all/a", "/myXdir/a", "/my_dirs/a"]


async def test_the_same_content_is_not_written(database_url: str) -> None:
    async with opened(database_url) as store:
        run = runner(store)
        await filled(run, p="one [[q]]", q="two")
        before = await everything(store)
        same = "Version: 1 (it said so already; nothing was written)"
        write = {"path": "/p", "content": "one [[q]]", "expected_version": 1}
        assert await run("wiki_write", **write) == f"Page updated: /p\n{same}"
        edit = {"path": "/p", "old_str": "one", "new_str": "one", "expected_version": 1}
        assert await run("wiki_str_replace", **edit) == f"Page updated: /p\n{same}"
        assert await run("wiki_restore", path="/p", version=1) == f"Page updated: /p\n{same}"
        assert await everything(store) == before
        assert await run("wiki_write", **write, title="Other") == "Page updated: /p\nVersion: 2"


async def test_an_edit_of_what_was_read_before_somebody_elses_is_refused(database_url: str) -> None:
    async with opened(database_url) as store:
        model, human = runner(store), runner(store)
        await filled(model, p="1\n2\n3\n")
        await human("wiki_insert", path="/p", insert_line=1, insert_text="new first line", expected_version=1)
        late = failure(await model("wiki_insert", path="/p", insert_line=2, insert_text="x", expected_version=1))
        assert late == (
            "Error: Page changed since it was read: /p is at version 2 now. "
            "Read it again with wiki_view, and edit what it says then."
        )
        assert await said(model, "/p") == "new first line\n1\n2\n3\n"
        # As it was at first is another version too.
        await human("wiki_restore", path="/p", version=1)
        assert "is at version 3" in failure(await model("wiki_write", path="/p", content="x", expected_version=1))


async def test_the_past_is_told_compared_and_brought_back(database_url: str) -> None:
    async with opened(database_url) as store:
        ada, bob = runner(store), runner(store, "bob", everyone_writes=True)
        await ada("wiki_create", path="/p", content="one\n", title="First")
        await bob("wiki_write", path="/p", content="two\n", title="Second", expected_version=1)
        await ada("wiki_delete", path="/p")
        assert "Version: 1\n" in await ada("wiki_view", path="/p", version=1)
        assert "deleted or moved away" in await ada("wiki_view", path="/p", version=3)
        assert await ada("wiki_restore", path="/p", version=1) == "Page updated: /p\nVersion: 4"
        assert " title: First\none\n" in await ada("wiki_view", path="/p")
        lines = text_of(await ada("wiki_history", path="/p")).split("\n")
        assert [line.split("  ")[::2] for line in lines] == [
            ["4", "by ada"],
            ["3", "by ada"],
            ["2", "by bob"],
            ["1", "by ada"],
        ]
        assert [line.split("  ")[3] for line in lines] == ["restored version 1", "deleted", "edited", "created"]
        first = await ada("wiki_history", path="/p", limit=3)
        assert first.endswith("go on with before 2.")
        assert [line[0] for line in text_of(await ada("wiki_history", path="/p", before=2)).split("\n")] == ["1"]
        changes = text_of(await ada("wiki_diff", path="/p", **{"from": 1, "to": 2}))
        assert changes == "Title: First -> Second\n--- /p version 1\n+++ /p version 2\n@@ -1 +1 @@\n-one\n+two"
        assert text_of(await ada("wiki_diff", path="/p", **{"from": 2})).endswith("-two\n+one")
        assert await ada("wiki_diff", path="/p", **{"from": 1}) == "Versions 1 and 4 of /p say the same."


async def test_a_page_has_at_most_a_million_bytes(database_url: str) -> None:
    async with opened(database_url) as store:
        run = runner(store)
        await filled(run, p="\u00e9" * (LARGEST // 2))
        edit = {"path": "/p", "expected_version": 1, "insert_line": 1, "insert_text": "x"}
        assert failure(await run("wiki_insert", **edit)).startswith("Error: Page too long: it would have 1000002 bytes")
        assert len(await said(run, "/p")) == LARGEST // 2
