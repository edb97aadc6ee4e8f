"""What the writing actions of ``wiki`` do, and say of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, TypeAlias

from anyio.to_thread import run_sync

from engine.cleaning import STORABLE_TEXT
from engine.text_arguments import flag_in, line_in, number_in, text_in
from engine.text_editing import EditError
from engine.wiki.access import Change, Wiki
from engine.wiki.limits import HIGHEST, LONGEST_TITLE
from engine.wiki.moving import Moved, move
from engine.wiki.pages import (
    PAGE,
    Draft,
    Page,
    Written,
    begin,
    delete_directory,
    delete_page,
    edit,
    not_found,
    read_page,
)
from engine.wiki.paths import ROOT, WikiPath, page_path, wiki_path
from engine.wiki.revisions import read_said, restore

__all__ = ("changed",)

_Edit: TypeAlias = Callable[[Page], tuple[str, str]]
"""Makes a page's next title and content of what it says."""

_Edits: TypeAlias = Callable[[dict[str, Any]], _Edit]

_LONG: Final = 50_000
"""Characters from which on work on a content goes to a thread."""


async def changed(wiki: Wiki, action: str, kwargs: dict[str, Any]) -> str | None:
    """Make a change and say so; None: it is none.

    :raises EditError: if it cannot be made; then nothing was changed
    :raises LogUnavailable: if nothing was written, or that is not known
    """
    actions: dict[str, Callable[[Wiki, dict[str, Any]], Awaitable[str]]] = {
        "create": _created,
        "str_replace": partial(_edited, _replaced),
        "insert": partial(_edited, _inserted),
        "write": partial(_edited, _written),
        "restore": _restored,
        "rename": _renamed,
        "delete": _deleted,
    }
    if action not in actions:
        return None
    await wiki.require_writer()
    return await actions[action](wiki, kwargs)


async def _created(wiki: Wiki, kwargs: dict[str, Any]) -> str:
    path, content = page_path(kwargs.get("path")), text_in(kwargs, "content", None)
    title = _title(kwargs) or path.path.rpartition("/")[2]
    draft = await _worked_out(partial(Draft.of, title, content), content)
    written = await wiki.change(lambda change: begin(change, path, draft))
    return f"Page created: {path.path}\nVersion: {written.version}"


async def _edited(edits: _Edits, wiki: Wiki, kwargs: dict[str, Any]) -> str:
    path, expected = page_path(kwargs.get("path")).path, _expected(kwargs)
    if expected is None:
        raise EditError("expected_version is required: the version that wiki_view gave.")
    edited = edits(kwargs)
    page = await read_page(wiki, path)
    draft = None
    if page is not None and page.version == expected:
        draft = await _worked_out(partial(_drafted, page, edited), page.content)
    written = await wiki.change(lambda change: edit(change, path, expected, draft))
    if edits is _inserted:
        return f"Text inserted at line {line_in(kwargs, 'insert_line')} in {path}\n{_version(written)}"
    return f"Page updated: {path}\n{_version(written)}"


def _drafted(page: Page, edited: _Edit) -> Draft:
    return Draft.of(*edited(page))


def _replaced(kwargs: dict[str, Any]) -> _Edit:
    old, new = text_in(kwargs, "old_str"), text_in(kwargs, "new_str")
    everywhere = flag_in(kwargs, "replace_all")
    return lambda page: (page.title, PAGE.replaced(page.content, old, new, everywhere))


def _inserted(kwargs: dict[str, Any]) -> _Edit:
    line, text = line_in(kwargs, "insert_line"), text_in(kwargs, "insert_text")
    return lambda page: (page.title, PAGE.inserted(page.content, line, text))


def _written(kwargs: dict[str, Any]) -> _Edit:
    content, title = text_in(kwargs, "content", None), _title(kwargs)
    return lambda page: (title or page.title, content)


async def _restored(wiki: Wiki, kwargs: dict[str, Any]) -> str:
    path, version, expected = page_path(kwargs.get("path")), number_in(kwargs, "version"), _expected(kwargs)
    if version is None:
        raise EditError("version is required: the one to go back to.")
    said = await read_said(wiki, path.path, min(version, HIGHEST))
    if said.content is None:
        raise EditError(f"Version {version} of {path.path} has no text: the page was deleted or moved then.")
    draft = await _worked_out(partial(Draft.of, said.title or "", said.content), said.content)
    written = await wiki.change(lambda change: restore(change, path, expected, draft, said.version))
    return f"Page updated: {path.path}\n{_version(written)}"


async def _worked_out(work: Callable[[], Draft], content: str) -> Draft:
    """Return what ``work`` returns; with a long content, others run meanwhile."""
    return work() if len(content) < _LONG else await run_sync(work, abandon_on_cancel=True)


async def _renamed(wiki: Wiki, kwargs: dict[str, Any]) -> str:
    old, new = wiki_path(kwargs.get("old_path")), wiki_path(kwargs.get("new_path"))
    mends = "fix_links" not in kwargs or flag_in(kwargs, "fix_links")
    moved: Moved = await wiki.change(lambda change: move(change, old, new, mends))
    said = f"Renamed: {old.path} -> {new.path}"
    if moved.is_directory:
        said = f"Renamed directory: {old.below} -> {new.below} ({moved.pages} pages)"
    return f"{said}\nLinks mended in {moved.mended} page(s)." if moved.mended else said


async def _deleted(wiki: Wiki, kwargs: dict[str, Any]) -> str:
    path, recursive, expected = wiki_path(kwargs.get("path")), flag_in(kwargs, "recursive"), _expected(kwargs)
    if path == ROOT:
        raise EditError("Cannot delete the wiki root.")
    count = await wiki.change(lambda change: _removed(change, path, recursive, expected))
    return f"Deleted: {path.path}" if count is None else f"Deleted directory and {count} page(s)."


def _removed(change: Change, path: WikiPath, recursive: bool, expected: int | None) -> int | None:
    """Delete, and return how many pages a directory had; None: it was a page."""
    if not path.is_directory and delete_page(change, path.path, expected):
        return None
    count = delete_directory(change, path)
    if not count:
        raise EditError(f"Directory not found: {path.below}") if path.is_directory else not_found(path.path)
    if not recursive:
        raise EditError(f"{path.below} is a directory of {count} page(s); set recursive to delete them all.")
    return count


def _expected(kwargs: dict[str, Any]) -> int | None:
    expected = number_in(kwargs, "expected_version")
    return None if expected is None else min(expected, HIGHEST)


def _title(kwargs: dict[str, Any]) -> str:
    title = " ".join(STORABLE_TEXT.clean(text_in(kwargs, "title")).split())
    if len(title) > LONGEST_TITLE:
        raise EditError(f"title is too long: at most {LONGEST_TITLE} characters.")
    return title


def _version(written: Written) -> str:
    same = "" if written.changed else " (it said so already; nothing was written)"
    return f"Version: {written.version}{same}"
