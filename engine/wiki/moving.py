"""Moving pages and directories: their links go along, and the links of other pages follow."""

from __future__ import annotations

from typing import Any

import msgspec
from sqlalchemy import Integer, Text, and_, func, literal, or_, select, update
from sqlalchemy.sql import ColumnElement

from engine.text_editing import EditError
from engine.tool_schema import wiki_links, wiki_pages, wiki_revisions
from engine.wiki.access import Change, beginning
from engine.wiki.limits import LINKS, LONGEST_PATH, MENDED, MOVED
from engine.wiki.links import relinked
from engine.wiki.pages import Draft, bury, find, not_found, note, require_free, rewrite
from engine.wiki.paths import ROOT, WikiPath
from events.schema import Key

__all__ = ("Move", "Moved", "move")

_PAGE = wiki_pages.c
_REVISION = wiki_revisions.c
_LINK = wiki_links.c
_LEADING = MOVED * LINKS
_MENDED = "links follow "
_ASIDE = ":"
"""Begins the paths of pages that are being moved: no page's own path does."""


class Moved(msgspec.Struct, frozen=True):
    """What was moved: how many pages, and in how many pages links were mended."""

    is_directory: bool
    pages: int
    mended: int = 0


class Move(msgspec.Struct, frozen=True):
    """From one path to another: a page's, or a directory's with all that is in it."""

    old: WikiPath
    new: WikiPath
    is_directory: bool

    def has(self, column: Any, start: str = "") -> ColumnElement[bool]:
        """Return the condition that a path is moved."""
        if self.is_directory:
            return beginning(column, start + self.old.below)
        condition: ColumnElement[bool] = column == start + self.old.path
        return condition

    def leads(self, column: Any) -> ColumnElement[bool]:
        """Return the condition that a link leads to what is moved."""
        if not self.is_directory:
            return self.has(column)
        # A range of its own, for an index; what it has besides, like /docs-old, does not count.
        return and_(beginning(column, self.old.path), or_(column == self.old.path, self.has(column)))

    def to(self, column: Any, start: str = "") -> ColumnElement[str]:
        """Return where a path is moved to."""
        if not self.is_directory:
            return literal(self.new.path, Key())
        rest = func.substr(column, len(start + self.old.below) + 1, type_=Text())
        return literal(self.new.below, Text()) + rest

    def arrived(self, column: Any) -> ColumnElement[bool]:
        """Return the condition that a path is one that something was moved to."""
        if self.is_directory:
            return beginning(column, self.new.below)
        condition: ColumnElement[bool] = column == self.new.path
        return condition

    def of(self, path: str) -> str | None:
        """Return where a path is moved to; None: it is not."""
        if path == self.old.path:
            return self.new.path
        if self.is_directory and path.startswith(self.old.below):
            return self.new.below + path.removeprefix(self.old.below)
        return None


def move(change: Change, old: WikiPath, new: WikiPath, mends: bool) -> Moved:
    """Move a page, or a directory if there is no page of that name; ``mends``: links to what is moved follow.

    :raises EditError: if there is nothing to move, no room for it, or too much of it
    """
    if ROOT in (old, new):
        raise EditError("Cannot rename the wiki root, or put something in its place.")
    before = _before(change, old)
    if before is not None:
        return before
    this = _resolved(change, old, new)
    count = _require_possible(change, this)
    _carry(change, this)
    return Moved(this.is_directory, count, _mend(change, this) if mends else 0)


def _before(change: Change, old: WikiPath) -> Moved | None:
    """Return what this call did when it was run before; None: it is run for the first time."""
    left = (_REVISION.content.is_(None), or_(_REVISION.path == old.path, beginning(_REVISION.path, old.below)))
    done = change.connection.execute(select(func.count(), func.max(_REVISION.path)).where(*change.mine, *left)).one()
    if not done[0]:
        return None
    mended = select(func.count()).where(*change.mine, _REVISION.comment.startswith(_MENDED))
    return Moved(done[1] != old.path, done[0], int(change.connection.execute(mended).scalar_one()))


def _resolved(change: Change, old: WikiPath, new: WikiPath) -> Move:
    page = None if old.is_directory else find(change, old.path)
    if page is None:
        inside = select(_PAGE.path).where(*change.place.pages, beginning(_PAGE.path, old.below)).limit(1)
        if change.connection.execute(inside).first() is None:
            raise EditError(f"Directory not found: {old.below}") if old.is_directory else not_found(old.path)
    elif new.is_directory:
        raise EditError(f"Invalid path: {new.below} is a directory; give the page's whole new path.")
    return Move(old, new, is_directory=page is None)


def _require_possible(change: Change, this: Move) -> int:
    old, new = this.old, this.new
    if old.path == new.path:
        raise EditError("Invalid path: old_path and new_path are the same.")
    if this.is_directory and new.below.startswith(old.below):
        raise EditError(f"Invalid path: {old.below} cannot be moved into itself.")
    require_free(change, new, besides=this.has(_PAGE.path))
    moved = select(_PAGE.path).where(*change.place.pages, this.has(_PAGE.path)).limit(MOVED + 1)
    paths = [path for (path,) in change.connection.execute(moved)]
    if len(paths) > MOVED:
        raise EditError(f"Directory holds more than {MOVED} pages; rename its directories one by one.")
    if any(len((this.of(path) or path).encode()) > LONGEST_PATH for path in paths):
        raise EditError(f"Invalid path: some page's path would be longer than {LONGEST_PATH} bytes.")
    return len(paths)


def _carry(change: Change, this: Move) -> None:
    """Move the pages, by way of paths of no page: their new ones may be the old ones of others that are moved."""
    place, connection = change.place, change.connection
    bury(change, this.has(_PAGE.path), literal("moved to ", Text()) + this.to(_PAGE.path))
    new = this.to(_PAGE.path, _ASIDE)
    last = select(func.coalesce(func.max(_REVISION.version), 0)).where(*place.revisions, _REVISION.path == new)
    arrival = {
        "path": new,
        "version": last.scalar_subquery().cast(Integer) + 1,
        "updated_at": change.now,
        "updated_by": change.author,
    }
    for table, mine, values in ((wiki_pages, place.pages, arrival), (wiki_links, place.links, None)):
        path = table.c.path
        aside = update(table).where(*mine, this.has(path)).values(path=literal(_ASIDE, Text()) + path)
        connection.execute(aside)
        connection.execute(
            update(table).where(*mine, this.has(path, _ASIDE)).values(values or {"path": this.to(path, _ASIDE)})
        )
    origin = this.old.below if this.is_directory else this.old.path
    note(change, this.arrived(_PAGE.path), literal(f"moved from {origin}", Text()))


def _mend(change: Change, this: Move) -> int:
    """Lead the links of all pages to where the pages went, and return in how many pages."""
    comment = f"{_MENDED}{this.old.path} -> {this.new.path}"
    count = 0
    for path in _leading(change, this):
        page = find(change, path)
        if page is not None:
            draft = Draft.of(page.title, relinked(page.content, this.of))
            count += rewrite(change, page, draft, comment).changed
    return count


def _leading(change: Change, this: Move) -> list[str]:
    """Return the pages with links to what was moved."""
    connection, place = change.connection, change.place
    leading = select(_LINK.path).where(*place.links, this.leads(_LINK.target))
    # Not DISTINCT: for that, SQLite would rather read all links of the wiki.
    paths = {path for (path,) in connection.execute(leading.limit(_LEADING + 1))}
    size = select(func.sum(func.length(_PAGE.content))).where(*place.pages, _PAGE.path.in_(leading.scalar_subquery()))
    if len(paths) > MOVED or int(connection.execute(size).scalar() or 0) > MENDED:
        raise EditError(
            f"Page links: more than {MOVED} pages, or pages of more than {MENDED} characters, link there. "
            "Set fix_links to false to leave them as they are."
        )
    return sorted(paths)
