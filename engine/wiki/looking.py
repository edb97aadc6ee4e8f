"""What the reading actions of ``wiki`` say."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final, TypeVar

from anyio.to_thread import run_sync

from engine.cleaning import STORABLE_TEXT
from engine.text_arguments import number_in, range_in, text_in
from engine.text_editing import EditError, lines_of
from engine.wiki.access import Wiki
from engine.wiki.fence import fenced
from engine.wiki.finding import Found, Link, list_pages, read_backlinks, read_links, search_pages
from engine.wiki.limits import FOUND, HIGHEST, LISTED, LONGEST_PIECE
from engine.wiki.pages import PAGE, not_found
from engine.wiki.paths import WikiPath, page_path, wiki_path
from engine.wiki.revisions import Said, compared, read_revisions, read_said

__all__ = ("seen",)

T = TypeVar("T")
_LINES: Final = 100
_PAGES: Final = 20
_VERSIONS: Final = 50


async def seen(wiki: Wiki, action: str, kwargs: dict[str, Any]) -> str | None:
    """Return what a reading action says; None: it is not one.

    :raises EditError: if it cannot be done
    :raises LogUnavailable: if the database cannot be read
    """
    match action:
        case "view":
            return await _view(wiki, kwargs)
        case "list":
            return await _listing(wiki, _start(kwargs), kwargs)
        case "search":
            return await _search(wiki, kwargs)
        case "links":
            return await _links(wiki, page_path(kwargs.get("path")).path, kwargs)
        case "history":
            return await _history(wiki, page_path(kwargs.get("path")).path, kwargs)
        case "diff":
            return await _diff(wiki, page_path(kwargs.get("path")).path, kwargs)
    return None


async def _view(wiki: Wiki, kwargs: dict[str, Any]) -> str:
    path, version = wiki_path(kwargs.get("path")), number_in(kwargs, "version")
    lines = range_in(kwargs, "view_range")
    if path.is_directory:
        return await _directory(wiki, path)
    try:
        said = await read_said(wiki, path.path, _least(version))
    except EditError:
        if version is None and await list_pages(wiki, path.below, path.below, 1):
            return await _directory(wiki, path)
        raise
    return _page(path.path, said, lines)


def _page(path: str, said: Said, lines: tuple[int, int] | None) -> str:
    head = f"Page: {path}\nVersion: {said.version}"
    if said.content is None:
        return f"{head}\nThe page was deleted or moved away at this version."
    content = said.content if lines is None else PAGE.numbered(said.content, *lines)
    return f"{head}\nLines: {len(lines_of(said.content))}\n{fenced(content, said.title or '')}"


async def _directory(wiki: Wiki, path: WikiPath) -> str:
    return await _listing(wiki, path.below, {})


async def _listing(wiki: Wiki, prefix: str, kwargs: dict[str, Any]) -> str:
    limit = _limit(kwargs, _LINES, LISTED)
    pages = await list_pages(wiki, prefix, _after(kwargs), limit + 1)
    if not pages and prefix != "/" and not kwargs.get("after"):
        raise EditError(f"Directory not found: {prefix}") if prefix.endswith("/") else not_found(f"{prefix}...")
    head = f"Directory: {prefix}" if prefix.endswith("/") else f"Paths that begin with {prefix}"
    lines = [f"- {page.path}: {page.title}" for page in pages[:limit]]
    return f"{head}\n{_fenced_lines(lines)}{_more(pages, limit)}" if lines else f"{head}\n(empty)"


async def _search(wiki: Wiki, kwargs: dict[str, Any]) -> str:
    piece = STORABLE_TEXT.clean(text_in(kwargs, "text"))
    if not piece:
        raise EditError("text is required: what to look for.")
    if len(piece) > LONGEST_PIECE:
        raise EditError(f"text is too long: at most {LONGEST_PIECE} characters can be searched for.")
    limit = _limit(kwargs, _PAGES, FOUND)
    found = await search_pages(wiki, piece, _start(kwargs), _after(kwargs), limit + 1)
    if not found:
        return "No pages found."
    return f"Pages found:\n{_fenced_lines([_found(each) for each in found[:limit]])}{_more(found, limit)}"


def _found(page: Found) -> str:
    return f"- {page.path}: {page.title}" + (f"\n  line {page.line}: {page.excerpt}" if page.line else "")


async def _links(wiki: Wiki, path: str, kwargs: dict[str, Any]) -> str:
    limit = _limit(kwargs, _LINES, LISTED)
    out = await read_links(wiki, path)
    back = await read_backlinks(wiki, path, _after(kwargs), limit + 1)
    lines = [
        "It links to:" if out else "It links to no page.",
        *map(_link, out),
        "Linked from:" if back else "No page links to it.",
        *(f"- {each}" for each in back[:limit]),
    ]
    return f"Links of {path}\n{_fenced_lines(lines)}{_more(back, limit)}"


def _link(link: Link) -> str:
    return f"- {link.path}{'' if link.exists else ' (no such page)'}"


async def _history(wiki: Wiki, path: str, kwargs: dict[str, Any]) -> str:
    limit = _limit(kwargs, _VERSIONS, LISTED)
    before = number_in(kwargs, "before")
    revisions = await read_revisions(wiki, path, HIGHEST if before is None else _bounded(before), limit + 1)
    if not revisions and before is None:
        raise not_found(path)
    lines = [
        f"{each.version}  {each.changed_at:%Y-%m-%d %H:%M:%S}Z  by {each.changed_by or 'nobody named'}  {each.comment}"
        for each in revisions[:limit]
    ]
    more = f"\nThere are more: go on with before {revisions[limit - 1].version}." if len(revisions) > limit else ""
    return f"Versions of {path}\n{_fenced_lines(lines)}{more}" if lines else f"Versions of {path}\n(no more)"


async def _diff(wiki: Wiki, path: str, kwargs: dict[str, Any]) -> str:
    first, last = number_in(kwargs, "from"), number_in(kwargs, "to")
    if first is None:
        raise EditError("from is required: the earlier version.")
    old = await read_said(wiki, path, _bounded(first))
    new = await read_said(wiki, path, _least(last))
    changed = await run_sync(partial(compared, path, old, new), abandon_on_cancel=True)
    titles = f"Title: {old.title} -> {new.title}\n" if old.title != new.title else ""
    if not changed and not titles:
        return f"Versions {old.version} and {new.version} of {path} say the same."
    return f"Changes of {path} from version {old.version} to {new.version}\n{fenced(titles + changed)}"


def _start(kwargs: dict[str, Any]) -> str:
    """Return what paths must begin with."""
    prefix = text_in(kwargs, "prefix") or "/"
    path = wiki_path(prefix)
    return path.below if path.is_directory else path.path


def _after(kwargs: dict[str, Any]) -> str:
    after = text_in(kwargs, "after")
    return wiki_path(after).path if after else ""


def _limit(kwargs: dict[str, Any], usual: int, most: int) -> int:
    return min(number_in(kwargs, "limit") or usual, most)


def _bounded(version: int) -> int:
    return min(version, HIGHEST)


def _least(version: int | None) -> int | None:
    return None if version is None else _bounded(version)


def _fenced_lines(lines: Sequence[str]) -> str:
    return fenced("\n".join(lines))


def _more(items: Sequence[Any], limit: int) -> str:
    return "\nThere are more: go on with after set to the last path shown." if len(items) > limit else ""
