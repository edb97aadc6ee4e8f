"""Pages as they are: begun, edited and deleted, each change with its revision, within one transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
from sqlalchemy import Select, Text, bindparam, delete, func, insert, literal, null, select, update
from sqlalchemy.sql import ColumnElement

from engine.text_editing import EditError, TextKind
from engine.tool_schema import wiki_links, wiki_pages, wiki_revisions
from engine.wiki.access import Change, Place, Wiki, beginning, here
from engine.wiki.limits import LARGEST, MOVED
from engine.wiki.links import targets
from engine.wiki.paths import WikiPath
from events.schema import Key, Utc

__all__ = (
    "PAGE",
    "Draft",
    "Page",
    "Written",
    "begin",
    "bury",
    "delete_directory",
    "delete_page",
    "edit",
    "find",
    "not_found",
    "note",
    "read_page",
    "require_free",
)

PAGE: Final = TextKind("page", LARGEST, quoted=False)
"""What is edited."""

_COPIED: Final = ("tenant", "wiki", "path", "version", "title", "content")
_SAID: Final = ("changed_at", "changed_by", "by_call", "comment")

_PAGE = wiki_pages.c
_REVISION = wiki_revisions.c
_LINK = wiki_links.c

_PAGE_HERE: Final = select(_PAGE.path, _PAGE.title, _PAGE.content, _PAGE.version).where(*here(wiki_pages))
_LAST: Final = select(func.max(_REVISION.version)).where(*here(wiki_revisions))
_MADE: Final = _LAST.where(
    _REVISION.by_call == bindparam("by_call"), _REVISION.changed_by.is_not_distinct_from(bindparam("author"))
)
_TARGETS: Final = select(_LINK.target).where(*here(wiki_links))
_REWRITTEN: Final = update(wiki_pages).where(*here(wiki_pages))
_BEGUN: Final = insert(wiki_pages)
_REVISED: Final = insert(wiki_revisions)


class Page(msgspec.Struct, frozen=True):
    """A page as it stands."""

    path: str
    title: str
    content: str
    version: int


class Draft(msgspec.Struct, frozen=True):
    """What a page is to say, and where it will link to: worked out before the transaction, which others wait for."""

    title: str
    content: str
    links: frozenset[str]

    @classmethod
    def of(cls, title: str, content: str) -> Draft:
        """Return the draft of a title and a content. :raises EditError: if it is too long, or has too many links"""
        content = PAGE.fitting(content)
        return cls(title, content, targets(content))


class Written(msgspec.Struct, frozen=True):
    """The version at which a page is after a change, and whether anything had to be written."""

    version: int
    changed: bool = True


def not_found(path: str) -> EditError:
    """Return the error for a page that is not there."""
    return EditError(f"Page not found: {path}")


async def read_page(wiki: Wiki, path: str) -> Page | None:
    """Return a page, or None. :raises LogUnavailable: if it cannot be read"""
    found = await wiki.read(_select(wiki.place, path))
    return Page(*found[0]) if found else None


def find(change: Change, path: str) -> Page | None:
    """Return a page, or None."""
    found = change.connection.execute(_PAGE_HERE, change.place.at(path)).first()
    return None if found is None else Page(*found)


def begin(change: Change, path: WikiPath, draft: Draft, comment: str = "created") -> Written:
    """Begin a page; its versions go on where those of a deleted one stopped.

    :raises EditError: if there is one, or a directory of that name, or a page in the place of its directory
    """
    done = _made(change, path.path)
    if done is not None:
        return Written(done)
    require_free(change, path)
    return _put(change, path.path, _last(change, path.path), draft, comment)


def edit(change: Change, path: str, expected: int | None, draft: Draft | None, comment: str = "edited") -> Written:
    """Make a page say what was drafted; if it says so already, nothing is written.

    :param expected: the version that the draft was made of; None: whichever there is
    :param draft: None: there was no such version to make one of
    :raises EditError: if there is no page, or it was changed since
    """
    done = _made(change, path)
    if done is not None:
        return Written(done)
    page = find(change, path)
    if page is None:
        raise not_found(path)
    if draft is None or expected not in (None, page.version):
        raise _changed(page)
    if (draft.title, draft.content) == (page.title, page.content):
        return Written(page.version, changed=False)
    return _put(change, path, page.version, draft, comment)


def delete_page(change: Change, path: str, expected: int | None) -> bool:
    """Delete a page and tell whether there was one; its revisions stay.

    :raises EditError: if it was changed since it was read
    """
    if _made(change, path) is not None:
        return True
    page = find(change, path)
    if page is None:
        return False
    if expected not in (None, page.version):
        raise _changed(page)
    _delete(change, lambda column: column == path)
    return True


def delete_directory(change: Change, path: WikiPath) -> int:
    """Delete every page in a directory and return how many there were.

    :raises EditError: if there are too many
    """

    def inside(column: Any) -> ColumnElement[bool]:
        return beginning(column, path.below)

    done = select(func.count()).where(*change.mine, inside(_REVISION.path))
    before = int(change.connection.execute(done).scalar_one())
    return before or _delete(change, inside)


def require_free(change: Change, path: WikiPath, besides: ColumnElement[bool] | None = None) -> None:
    """Refuse a path where a page cannot be begun.

    :param besides: the condition of pages that do not count
    :raises EditError: if there is a page, or a directory of that name, or a page in the place of its directory
    """
    counted = [] if besides is None else [~besides]
    names = (path.path, *path.ancestors)
    page = select(_PAGE.path).where(*change.place.pages, _PAGE.path.in_(names), *counted).order_by(_PAGE.path)
    found = change.connection.execute(page.limit(1)).scalar()
    if found == path.path:
        raise EditError(f"Page already exists at {found}; nothing was overwritten. Edit it, or choose another path.")
    if found is not None:
        raise EditError(f"Page already exists at {found}, so it cannot be a directory of pages too.")
    inside = select(_PAGE.path).where(*change.place.pages, beginning(_PAGE.path, path.below), *counted).limit(1)
    if change.connection.execute(inside).first() is not None:
        raise EditError(f"Page already exists below {path.below}: a directory of pages cannot be a page too.")


def _changed(page: Page) -> EditError:
    return EditError(
        f"Page changed since it was read: {page.path} is at version {page.version} now. "
        "Read it again with wiki_view, and edit what it says then."
    )


def _made(change: Change, path: str) -> int | None:
    """Return the version of a page that this call made when it was run before; None: it is run for the first time."""
    whose = {"by_call": change.by_call, "author": change.author}
    found: int | None = change.connection.execute(_MADE, {**change.place.at(path), **whose}).scalar()
    return found


def _last(change: Change, path: str) -> int:
    return change.connection.execute(_LAST, change.place.at(path)).scalar() or 0


def _select(place: Place, path: str) -> Select[Any]:
    return select(_PAGE.path, _PAGE.title, _PAGE.content, _PAGE.version).where(*place.pages, _PAGE.path == path)


def _put(change: Change, path: str, last: int, draft: Draft, comment: str) -> Written:
    place = {"tenant": change.place.tenant, "wiki": change.place.name, "path": path}
    said = {"title": draft.title, "content": draft.content, "version": last + 1}
    now = {**said, "updated_at": change.now, "updated_by": change.author}
    if not change.connection.execute(_REWRITTEN, {**change.place.at(path), **now}).rowcount:
        change.connection.execute(_BEGUN, {**place, **now, "created_at": change.now})
    by = {"changed_at": change.now, "changed_by": change.author, "by_call": change.by_call, "comment": comment}
    change.connection.execute(_REVISED, {**place, **said, **by})
    _relink(change, path, draft.links)
    return Written(last + 1)


def _relink(change: Change, path: str, links: frozenset[str]) -> None:
    before = {target for (target,) in change.connection.execute(_TARGETS, change.place.at(path))}
    if gone := before - links:
        this = (*change.place.links, _LINK.path == path)
        change.connection.execute(delete(wiki_links).where(*this, _LINK.target.in_(sorted(gone))))
    if new := links - before:
        place = {"tenant": change.place.tenant, "wiki": change.place.name, "path": path}
        change.connection.execute(insert(wiki_links), [{**place, "target": target} for target in sorted(new)])


def _delete(change: Change, which: Callable[[Any], ColumnElement[bool]]) -> int:
    """Delete pages; each has a last revision without content."""
    place, connection = change.place, change.connection
    deleted = (*place.pages, which(_PAGE.path))
    counted = select(_PAGE.path).where(*deleted).limit(MOVED + 1).subquery()
    count = int(connection.execute(select(func.count()).select_from(counted)).scalar_one())
    if count > MOVED:
        raise EditError(f"Directory holds more than {MOVED} pages; delete its directories one by one.")
    bury(change, which(_PAGE.path), literal("deleted"))
    connection.execute(delete(wiki_links).where(*place.links, which(_LINK.path)))
    connection.execute(delete(wiki_pages).where(*deleted))
    return count


def bury(change: Change, which: ColumnElement[bool], comment: ColumnElement[str]) -> None:
    """Write the last revisions, without content, of pages that are about to go."""
    _note(change, which, [_PAGE.version + 1, null(), null()], comment)


def note(change: Change, which: ColumnElement[bool], comment: ColumnElement[str]) -> None:
    """Write revisions of pages as they now are."""
    _note(change, which, [_PAGE.version, _PAGE.title, _PAGE.content], comment)


def _note(
    change: Change, which: ColumnElement[bool], said: list[ColumnElement[Any]], comment: ColumnElement[str]
) -> None:
    rows = select(
        _PAGE.tenant,
        _PAGE.wiki,
        _PAGE.path,
        *said,
        literal(change.now, Utc()),
        literal(change.author, Text()),
        literal(change.by_call, Key()),
        comment.cast(Text),
    ).where(*change.place.pages, which)
    written = insert(wiki_revisions).from_select([*_COPIED, *_SAID], rows, include_defaults=False)
    change.connection.execute(written)
