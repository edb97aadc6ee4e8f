"""``wiki``: what pages link to, where they are moved, and how they are found."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import func, select

from engine.tool_schema import wiki_links, wiki_pages, wiki_revisions
from engine.wiki.limits import LARGEST, MOVED
from tests.engine.wiki.wikis import (
    everything,
    failure,
    filled,
    lines_of,
    links_that_are_wrong,
    opened,
    pages,
    runner,
    said,
    text_of,
)

pytestmark = pytest.mark.anyio


async def test_links_are_known_and_follow_what_is_moved(database_url: str) -> None:
    async with opened(database_url) as store:
        run = runner(store)
        await filled(
            run, home="[[guide/a]] [[/guide/b#x|B]] [[none]]", guide__a="[[guide/b]] [[home]]", guide__b="[[guide/]]"
        )
        assert lines_of(await run("wiki_links", path="/guide/b")) == [
            "It links to:",
            "- /guide (no such page)",
            "Linked from:",
            "- /guide/a",
            "- /home",
        ]
        assert "- /none (no such page)" in lines_of(await run("wiki_links", path="/home"))
        assert lines_of(await run("wiki_links", path="/none"))[-1] == "- /home"
        more = await run("wiki_links", path="/guide/b", limit=1)
        assert "There are more" in more
        assert lines_of(await run("wiki_links", path="/guide/b", after="/guide/a"))[-1:] == ["- /home"]
        assert await run("wiki_rename", old_path="/guide/", new_path="/manual/") == (
            "Renamed directory: /guide/ -> /manual/ (2 pages)\nLinks mended in 3 page(s)."
        )
        assert await said(run, "/home") == "[[manual/a]] [[/manual/b#x|B]] [[none]]"
        assert (await said(run, "/manual/a"), await said(run, "/manual/b")) == ("[[manual/b]] [[home]]", "[[manual/]]")
        assert await pages(run) == ["/home", "/manual/a", "/manual/b"]
        assert (
            await run("wiki_rename", old_path="/manual/a", new_path="/x", fix_links=False) == "Renamed: /manual/a -> /x"
        )
        assert "[[manual/a]]" in await said(run, "/home")
        assert await run("wiki_rename", old_path="/x", new_path="/manual/a") == "Renamed: /x -> /manual/a"
        assert lines_of(await run("wiki_links", path="/manual/a"))[-1] == "- /home"
        history = [line.split("  ")[3] for line in lines_of(await run("wiki_history", path="/manual/a"))]
        assert history == ["moved from /x", "moved to /x", "links follow /guide -> /manual", "moved from /guide/"]
        assert lines_of(await run("wiki_history", path="/guide/a"))[0].endswith("moved to /manual/a")
        edit = {"path": "/home", "content": "[[none]]", "expected_version": 2}
        await run("wiki_write", **edit)
        assert lines_of(await run("wiki_links", path="/manual/a"))[-1] == "No page links to it."
        await run("wiki_delete", path="/home")
        assert lines_of(await run("wiki_links", path="/none")) == ["It links to no page.", "No page links to it."]
        assert await links_that_are_wrong(store) == []


async def test_directories_move_up_and_pages_down(database_url: str) -> None:
    async with opened(database_url) as store:
        run = runner(store)
        await filled(run, a__b__b__x="[[a/b/x]]", a__b__x="[[a/b/b/x]]", a__b__c__y="")
        # /a/b/b/x goes where /a/b/x is, which goes to /a/x.
        assert (await run("wiki_rename", old_path="/a/b/", new_path="/a")).startswith(
            "Renamed directory: /a/b/ -> /a/ (3 "
        )
        assert await pages(run) == ["/a/b/x", "/a/c/y", "/a/x"]
        assert (await said(run, "/a/b/x"), await said(run, "/a/x")) == ("[[a/x]]", "[[a/b/x]]")
        await run("wiki_rename", old_path="/a/x", new_path="/a/x/y")
        await run("wiki_rename", old_path="/a/x/y", new_path="/a/x")
        assert await pages(run) == ["/a/b/x", "/a/c/y", "/a/x"]
        assert "Page already exists" in failure(await run("wiki_rename", old_path="/a/b/", new_path="/a"))
        assert await pages(run) == ["/a/b/x", "/a/c/y", "/a/x"]
        assert await links_that_are_wrong(store) == []
        columns = wiki_revisions.c
        last = select(columns.path, func.max(columns.version)).group_by(columns.path)
        now = {tuple(row) for row in await store.read(select(wiki_pages.c.path, wiki_pages.c.version))}
        assert now <= {tuple(row) for row in await store.read(last)}


async def test_a_rename_that_fails_half_way_has_not_begun(database_url: str) -> None:
    async with opened(database_url) as store:
        run = runner(store)
        full = "[[a]]" + "x" * (LARGEST - 5)
        await filled(run, a="", b="[[a]]", full=full)
        before = await everything(store)
        assert "Page too long" in failure(await run("wiki_rename", old_path="/a", new_path="/longer"))
        assert await everything(store) == before


async def test_one_call_moves_or_deletes_a_bounded_number(tmp_path: Any) -> None:
    async with opened(f"sqlite:///{tmp_path}/w.db") as store:
        run = runner(store)
        await filled(run, d__0="[[target]]", target="")

        def copy(connection: Any) -> None:
            row = dict(connection.execute(select(wiki_pages).where(wiki_pages.c.path == "/d/0")).mappings().one())
            connection.execute(wiki_pages.insert(), [{**row, "path": f"/d/{n}"} for n in range(1, MOVED + 1)])
            link = {"tenant": "uada", "wiki": "w1", "target": "/target"}
            connection.execute(wiki_links.insert(), [{**link, "path": f"/d/{n}"} for n in range(1, MOVED + 1)])

        await store.transact(copy)
        before = await everything(store)
        assert f"more than {MOVED} pages" in failure(await run("wiki_delete", path="/d/", recursive=True))
        assert f"more than {MOVED} pages" in failure(await run("wiki_rename", old_path="/d/", new_path="/e/"))
        assert f"more than {MOVED} pages" in failure(await run("wiki_rename", old_path="/target", new_path="/e"))
        assert await everything(store) == before
        assert await run("wiki_rename", old_path="/target", new_path="/e", fix_links=False) == "Renamed: /target -> /e"
        await run("wiki_delete", path="/d/7")
        assert await run("wiki_delete", path="/d/", recursive=True) == f"Deleted directory and {MOVED} page(s)."


async def test_text_is_found_literally_wherever_it_is(database_url: str) -> None:
    async with opened(database_url) as store:
        run = runner(store)
        await filled(run, a="first\n  100% SURE_ly\nlast", b="1000 sure-ly", c__Sure="x", d="\u00c9t\u00e9 \\ [x]")
        await run("wiki_create", path="/e", content="", title="Sure")

        async def found(text: str, **more: Any) -> list[str]:
            result = await run("wiki_search", text=text, **more)
            return [] if result == "No pages found." else text_of(result).split("\n")

        assert await found("100% s") == ["- /a: a", "  line 2: first 100% SURE_ly last"]
        assert await found("sure_LY") == ["- /a: a", "  line 2: first 100% SURE_ly last"]
        assert [line for line in await found("sure") if line[0] == "-"] == [
            "- /a: a",
            "- /b: b",
            "- /c/Sure: Sure",
            "- /e: Sure",
        ]
        assert [line[:4] for line in await found("sure", limit=1, after="/a")] == ["- /b", "  li"]
        assert "There are more" in await run("wiki_search", text="sure", limit=1)
        assert (await found("sure", prefix="/c/")) == ["- /c/Sure: Sure"]
        for text, path in (("\\", "/d"), ("[x]", "/d"), ("\u00c9", "/d"), ("\n  ", "/a"), ("'", ""), ("zz", "")):
            assert [line[2:4] for line in await found(text) if line[0] == "-"] == ([path] if path else []), text


async def test_listings_go_on_where_they_stopped(tmp_path: Any) -> None:
    async with opened(f"sqlite:///{tmp_path}/w.db") as store:
        run = runner(store)
        names = [f"/d/p{number}" for number in range(7)]
        for name in names:
            await run("wiki_create", path=name, content="", title="x\n- /fake: y")
        seen: list[str] = []
        while True:
            result = await run("wiki_list", prefix="/d/", limit=3, **({"after": seen[-1]} if seen else {}))
            seen += [line.partition(": ")[0][2:] for line in lines_of(result)]
            if "There are more" not in result:
                break
        assert seen == names
        assert await run("wiki_list", after="/d/p6") == "Directory: /\n(empty)"
        assert lines_of(await run("wiki_view", path="/d")) == lines_of(await run("wiki_list", prefix="/d/"))
