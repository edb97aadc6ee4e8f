"""Finding pages: by path, by a piece of text, by links; no more is read of a page than is shown."""

from __future__ import annotations

import msgspec
from sqlalchemy import Text, collate, exists, func, literal, or_, select
from sqlalchemy.sql import ColumnElement

from engine.tool_schema import wiki_links, wiki_pages
from engine.wiki.access import Wiki, beginning

__all__ = ("Found", "Link", "Listed", "list_pages", "read_backlinks", "read_links", "search_pages")

_PAGE = wiki_pages.c
_LINK = wiki_links.c
_BEFORE = 40
_SHOWN = 160


class Listed(msgspec.Struct, frozen=True):
    """A page in a listing."""

    path: str
    title: str


class Found(msgspec.Struct, frozen=True):
    """A page that has a piece of text.

    :ivar line: the number of the first line of its content that has it; 0: only its path or title
    :ivar excerpt: what stands around it
    """

    path: str
    title: str
    line: int
    excerpt: str


class Link(msgspec.Struct, frozen=True):
    """Where a page links to, and whether there is a page."""

    path: str
    exists: bool


async def list_pages(wiki: Wiki, prefix: str, after: str, limit: int) -> list[Listed]:
    """Return pages whose paths begin so, in order. :raises LogUnavailable: if they cannot be read"""
    wanted = (*wiki.place.pages, beginning(_PAGE.path, prefix), _PAGE.path > after)
    found = await wiki.read(select(_PAGE.path, _PAGE.title).where(*wanted).order_by(_PAGE.path).limit(limit))
    return [Listed(*row) for row in found]


async def search_pages(wiki: Wiki, piece: str, prefix: str, after: str, limit: int) -> list[Found]:
    """Return pages that have a piece of text, taken literally, the letters A to Z in either case; in order of paths.

    :raises LogUnavailable: if they cannot be read
    """
    dialect = wiki.dialect
    wanted = literal("".join(each.lower() if each.isascii() else each for each in piece), Text())

    def at(text: ColumnElement[str]) -> ColumnElement[int]:
        if dialect == "postgresql":
            # The collation decides which letters have a case.
            return func.strpos(func.lower(collate(text, "C")), wanted)
        return func.instr(func.lower(text), wanted)

    where = at(_PAGE.content)
    head = func.substr(_PAGE.content, 1, where)
    line = func.length(head) - func.length(func.replace(head, "\n", "")) + 1
    start = where - _BEFORE
    statement = (
        select(_PAGE.path, _PAGE.title, where, line, func.substr(_PAGE.content, start, _SHOWN))
        .where(
            *wiki.place.pages,
            beginning(_PAGE.path, prefix),
            _PAGE.path > after,
            or_(where > 0, at(_PAGE.title) > 0, at(_PAGE.path) > 0),
        )
        .order_by(_PAGE.path)
        .limit(limit)
    )
    return [_found(*row) for row in await wiki.read(statement)]


async def read_links(wiki: Wiki, path: str) -> list[Link]:
    """Return where a page links to. :raises LogUnavailable: if that cannot be read"""
    page = exists().where(*wiki.place.pages, _PAGE.path == _LINK.target)
    statement = select(_LINK.target, page).where(*wiki.place.links, _LINK.path == path).order_by(_LINK.target)
    return [Link(target, bool(there)) for target, there in await wiki.read(statement)]


async def read_backlinks(wiki: Wiki, path: str, after: str, limit: int) -> list[str]:
    """Return the pages that link to a path. :raises LogUnavailable: if they cannot be read"""
    wanted = (*wiki.place.links, _LINK.target == path, _LINK.path > after)
    return [row[0] for row in await wiki.read(select(_LINK.path).where(*wanted).order_by(_LINK.path).limit(limit))]


def _found(path: str, title: str, where: int, line: int, around: str) -> Found:
    if where == 0:
        return Found(path, title, 0, "")
    return Found(path, title, line, " ".join(around.split()))
