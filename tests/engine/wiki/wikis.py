"""A wiki that stands alone on a database, and a user's way to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import select

from engine.contract import Scope, ToolContext, ToolResult
from engine.services import Services
from engine.tool_schema import wiki_links, wiki_pages, wiki_revisions
from engine.tools.wiki import Wiki
from engine.toolstore import BoundStore
from engine.wiki.links import targets
from events.keys import new_id, tenant_column
from tests.engine.tools.keeping import opened

__all__ = (
    "Run",
    "everything",
    "failure",
    "filled",
    "lines_of",
    "links_that_are_wrong",
    "opened",
    "pages",
    "runner",
    "said",
    "text_of",
)

Run = Callable[..., Awaitable[Any]]


def runner(store: Any, user: str | None = "ada", tool_id: str = "w1", owner: str | None = "ada", **config: Any) -> Run:
    """Return a function that runs an action as this user on this row; each run is a call of its own."""
    tool = Wiki(config, Scope(user_id=user, owner=owner, tool_id=tool_id, services=Services(store=store)))
    bound = BoundStore(store, tenant_column(user), tool_id)

    async def run(action: str, /, key: str | None = None, **kwargs: Any) -> Any:
        context = ToolContext(
            user_id=user,
            message_id="m1",
            call_id="c1",
            conversation_id=None,
            run_id=None,
            agent_id=None,
            attachments=(),
            idempotency_key=key or new_id(),
            deadline=datetime.now(UTC),
            progress=lambda done, total, message: None,
            store=bound,
        )
        return await tool.execute_action(action, context, **kwargs)

    return run


def failure(result: Any) -> str:
    """Return what an error result says."""
    assert isinstance(result, ToolResult), result
    assert result.status == "error"
    return str(result.data)


def text_of(result: Any) -> str:
    """Return what stands between the marks of a result, once."""
    assert isinstance(result, str), result
    opening = next(line for line in result.split("\n") if line.startswith("<<<"))
    mark = opening[3:19]
    body: str = result[result.index(opening) + len(opening) + 1 : result.index(f"\n{mark}>>>")]
    assert body.count(mark) == 0
    return body


async def pages(run: Run) -> list[str]:
    """Return the paths of all pages, in order."""
    return [line.partition(": ")[0][2:] for line in lines_of(await run("wiki_list", limit=500))]


def lines_of(result: Any) -> list[str]:
    """Return the lines of a result between its marks; none where nothing is listed."""
    return [] if str(result).endswith("(empty)") else text_of(result).split("\n")


async def said(run: Run, path: str) -> str:
    """Return what a page says."""
    return text_of(await run("wiki_view", path=path))


async def filled(run: Run, **contents: str) -> None:
    """Begin pages; ``__`` in a name is a ``/``."""
    for name, content in contents.items():
        path = "/" + name.replace("__", "/")
        assert (await run("wiki_create", path=path, content=content)).startswith("Page created: ")


async def everything(store: Any) -> list[list[Any]]:
    """Return all that is kept of all wikis."""
    tables = (wiki_pages, wiki_revisions, wiki_links)
    return [sorted(map(repr, await store.read(select(table)))) for table in tables]


async def links_that_are_wrong(store: Any) -> list[Any]:
    """Return the links that pages have and nobody noted, and the other way round."""
    said = await store.read(select(wiki_pages.c.wiki, wiki_pages.c.path, wiki_pages.c.content))
    there = {(wiki, path, target) for wiki, path, content in said for target in targets(content)}
    columns = wiki_links.c
    noted = {tuple(row) for row in await store.read(select(columns.wiki, columns.path, columns.target))}
    return sorted(there ^ noted)
