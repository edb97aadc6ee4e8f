"""Moving pages and directories: their links go along, and the links of other pages follow."""

from __future__ import annotations

import msgspec
from sqlalchemy import Integer, Text, func, literal, or_, select, update

from engine.text_editing import EditError
from engine.tool_schema import wiki_links, wiki_pages, wiki_revisions
from engine.wiki.access import Change, beginning
from engine.wiki.limits import LONGEST_PATH, MOVED
from engine.wiki.mending import MENDED_FOR, mend
from engine.wiki.pages import bury, find, not_found, note, require_free
from engine.wiki.paths import ROOT, WikiPath
from engine.wiki.route import Route

__all__ = ("Moved", "move")

_PAGE = wiki_pages.c
_REVISION = wiki_revisions.c
_ASIDE = ":"
"""Begins the paths of pages that are being moved: no page's own path does."""


class Moved(msgspec.Struct, frozen=True):
    """What was moved: how many pages, and in how many pages links were mended."""

    is_directory: bool
    pages: int
    mended: int = 0


def move(change: Change, old: WikiPath, new: WikiPath, mends: bool) -> Moved:
    """Move a page, or a directory if there is no page of that name; ``mends``: links to what is moved follow.

    :raises EditError: if there is nothing to move, no room for it, or too much of it
    """
    if ROOT in (old, new):
        raise EditError("Cannot rename the wiki root, or put something in its place.")
    before = _before(change, old)
    if before is not None:
        return before
    route = _resolved(change, old, new)
    count = _require_possible(change, route)
    _carry(change, route)
    return Moved(route.is_directory, count, mend(change, route) if mends else 0)


def _before(change: Change, old: WikiPath) -> Moved | None:
    """Return what this call did when it was run before; None: it is run for the first time."""
    left = (_REVISION.content.is_(None), or_(_REVISION.path == old.path, beginning(_REVISION.path, old.below)))
    done = change.connection.execute(select(func.count(), func.max(_REVISION.path)).where(*change.mine, *left)).one()
    if not done[0]:
        return None
    mended = select(func.count()).where(*change.mine, _REVISION.comment.startswith(MENDED_FOR, autoescape=True))
    return Moved(done[1] != old.path, done[0], int(change.connection.execute(mended).scalar_one()))


def _resolved(change: Change, old: WikiPath, new: WikiPath) -> Route:
    page = None if old.is_directory else find(change, old.path)
    if page is None:
        inside = select(_PAGE.path).where(*change.place.pages, beginning(_PAGE.path, old.below)).limit(1)
        if change.connection.execute(inside).first() is None:
            raise EditError(f"Directory not found: {old.below}") if old.is_directory else not_found(old.path)
    elif new.is_directory:
        raise EditError(f"Invalid path: {new.below} is a directory; give the page's whole new path.")
    return Route(old, new, is_directory=page is None)


def _require_possible(change: Change, route: Route) -> int:
    old, new = route.old, route.new
    if old.path == new.path:
        raise EditError("Invalid path: old_path and new_path are the same.")
    if route.is_directory and new.below.startswith(old.below):
        raise EditError(f"Invalid path: {old.below} cannot be moved into itself.")
    require_free(change, new, besides=route.has(_PAGE.path))
    moved = select(_PAGE.path).where(*change.place.pages, route.has(_PAGE.path)).limit(MOVED + 1)
    paths = [path for (path,) in change.connection.execute(moved)]
    if len(paths) > MOVED:
        raise EditError(f"Directory holds more than {MOVED} pages; rename its directories one by one.")
    if any(len((route.of(path) or path).encode()) > LONGEST_PATH for path in paths):
        raise EditError(f"Invalid path: some page's path would be longer than {LONGEST_PATH} bytes.")
    return len(paths)


def _carry(change: Change, route: Route) -> None:
    """Move the pages, by way of paths of no page: their new ones may be the old ones of others that are moved."""
    place, connection = change.place, change.connection
    bury(change, route.has(_PAGE.path), literal("moved to ", Text()) + route.to(_PAGE.path))
    new = route.to(_PAGE.path, _ASIDE)
    last = select(func.coalesce(func.max(_REVISION.version), 0)).where(*place.revisions, _REVISION.path == new)
    arrival = {
        "path": new,
        "version": last.scalar_subquery().cast(Integer) + 1,
        "updated_at": change.now,
        "updated_by": change.author,
    }
    for table, mine, values in ((wiki_pages, place.pages, arrival), (wiki_links, place.links, None)):
        path = table.c.path
        aside = update(table).where(*mine, route.has(path)).values(path=literal(_ASIDE, Text()) + path)
        connection.execute(aside)
        connection.execute(
            update(table).where(*mine, route.has(path, _ASIDE)).values(values or {"path": route.to(path, _ASIDE)})
        )
    origin = route.old.below if route.is_directory else route.old.path
    note(change, route.back.has(_PAGE.path), literal(f"moved from {origin}", Text()))
