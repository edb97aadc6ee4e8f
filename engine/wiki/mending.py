"""Leading the links of pages to where others were moved, some hundred pages at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from sqlalchemy import bindparam, delete, func, insert, select, update

from engine.text_editing import EditError
from engine.tool_schema import wiki_links, wiki_pages, wiki_revisions
from engine.wiki.access import Change
from engine.wiki.limits import LINKS, MENDED, MOVED
from engine.wiki.links import relinked
from engine.wiki.pages import PAGE
from engine.wiki.route import Route

__all__ = ("MENDED_FOR", "mend")

MENDED_FOR: Final = "links follow "
"""Begins the comments of revisions that were made here."""

_BATCH: Final = 100
_PAGE = wiki_pages.c
_LINK = wiki_links.c


def mend(change: Change, route: Route) -> int:
    """Let the links of all pages to what was moved follow it, and return in how many pages.

    :raises EditError: if they are too many, or a page would become too long
    """
    links = _leading(change, route)
    paths = sorted({path for path, _ in links})
    _require_few(change, paths)
    for at in range(0, len(paths), _BATCH):
        _rewrite(change, route, paths[at : at + _BATCH])
    _relink(change, route, links)
    return len(paths)


def _leading(change: Change, route: Route) -> Sequence[tuple[str, str]]:
    # Not DISTINCT paths: for that, SQLite would rather read all links of the wiki.
    leading = select(_LINK.path, _LINK.target).where(*change.place.links, route.leads(_LINK.target))
    return [(path, target) for path, target in change.connection.execute(leading.limit(MOVED * LINKS + 1))]


def _require_few(change: Change, paths: Sequence[str]) -> None:
    size = 0
    for at in range(0, min(len(paths), MOVED + 1), _BATCH):
        some = (*change.place.pages, _PAGE.path.in_(paths[at : at + _BATCH]))
        size += int(change.connection.execute(select(func.sum(func.length(_PAGE.content))).where(*some)).scalar() or 0)
    if len(paths) > MOVED or size > MENDED:
        raise EditError(
            f"Page links: more than {MOVED} pages, or pages of more than {MENDED} characters, link there. "
            "Set fix_links to false to leave them as they are."
        )


def _rewrite(change: Change, route: Route, paths: Sequence[str]) -> None:
    columns = (_PAGE.path, _PAGE.title, _PAGE.version, _PAGE.content)
    pages = change.connection.execute(select(*columns).where(*change.place.pages, _PAGE.path.in_(paths)))
    changes = list(_changes(route, pages.all()))
    by = {"changed_at": change.now, "changed_by": change.author, "by_call": change.by_call}
    why = {"comment": f"{MENDED_FOR}{route.old.path} -> {route.new.path}"}
    here = {"tenant": change.place.tenant, "wiki": change.place.name}
    change.connection.execute(insert(wiki_revisions), [{**here, **each, **by, **why} for each in changes])
    values: dict[str, Any] = {"version": bindparam("to"), "content": bindparam("says")}
    this = (*change.place.pages, _PAGE.path == bindparam("at"))
    change.connection.execute(
        update(wiki_pages).where(*this).values(**values, updated_at=change.now, updated_by=change.author),
        [{"at": each["path"], "to": each["version"], "says": each["content"]} for each in changes],
    )


def _changes(route: Route, pages: Sequence[Any]) -> Iterator[dict[str, Any]]:
    for path, title, version, content in pages:
        mended = PAGE.fitting(relinked(content, route.of))
        yield {"path": path, "title": title, "version": version + 1, "content": mended}


def _relink(change: Change, route: Route, links: Sequence[tuple[str, str]]) -> None:
    """Note what the pages link to now; some may have linked to a new place before there was anything."""
    if not links:
        return
    connection, mine = change.connection, change.place.links
    connection.execute(delete(wiki_links).where(*mine, route.leads(_LINK.target)))
    now = {(path, new) for path, target in links if (new := route.of(target)) is not None}
    arrived = select(_LINK.path, _LINK.target).where(*mine, route.back.leads(_LINK.target))
    known = {(path, target) for path, target in connection.execute(arrived)}
    here = {"tenant": change.place.tenant, "wiki": change.place.name}
    if missing := sorted(now - known):
        connection.execute(insert(wiki_links), [{**here, "path": path, "target": target} for path, target in missing])
