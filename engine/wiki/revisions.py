"""Revisions: what a page said at each version, who wrote it, and the way back."""

from __future__ import annotations

import re
from datetime import datetime
from difflib import unified_diff
from typing import Final

import msgspec
from sqlalchemy import select

from engine.text_editing import EditError, lines_of
from engine.tool_schema import wiki_pages, wiki_revisions
from engine.wiki.access import Change, Wiki
from engine.wiki.limits import COMPARED
from engine.wiki.pages import Draft, Written, begin, edit, find, not_found
from engine.wiki.paths import WikiPath

__all__ = ("Revision", "Said", "compared", "read_revisions", "read_said", "restore")

_REVISION = wiki_revisions.c
_CONTEXT: Final = 3
_HUNK: Final = re.compile(r"([-+])(\d+)")


class Revision(msgspec.Struct, frozen=True):
    """One change of a page, without what it says since."""

    version: int
    changed_at: datetime
    changed_by: str | None
    comment: str | None


class Said(msgspec.Struct, frozen=True):
    """What a page said at a version; ``content`` None: it was deleted, or moved away."""

    version: int
    title: str | None
    content: str | None


async def read_revisions(wiki: Wiki, path: str, before: int, limit: int) -> list[Revision]:
    """Return a page's revisions, newest first; a page that is gone still has them.

    :raises LogUnavailable: if they cannot be read
    """
    columns = (_REVISION.version, _REVISION.changed_at, _REVISION.changed_by, _REVISION.comment)
    this = (*wiki.place.revisions, _REVISION.path == path, _REVISION.version < before)
    found = await wiki.read(select(*columns).where(*this).order_by(_REVISION.version.desc()).limit(limit))
    return [Revision(*row) for row in found]


async def read_said(wiki: Wiki, path: str, version: int | None) -> Said:
    """Return what a page said at a version, or says now.

    :raises EditError: if there is no such page, or version
    :raises LogUnavailable: if it cannot be read
    """
    table = wiki_pages if version is None else wiki_revisions
    this = [*wiki.place.of(table), table.c.path == path]
    if version is not None:
        this.append(table.c.version == version)
    found = await wiki.read(select(table.c.version, table.c.title, table.c.content).where(*this))
    if not found:
        raise not_found(path) if version is None else _no_version(path, version)
    return Said(*found[0])


def restore(change: Change, path: WikiPath, expected: int | None, draft: Draft, version: int) -> Written:
    """Make a page say again what it said at a version, as a new one; a page that was deleted is begun again.

    :raises EditError: if the page was changed since it was read, or cannot be begun there
    """
    comment = f"restored version {version}"
    if expected is None and find(change, path.path) is None:
        return begin(change, path, draft, comment)
    return edit(change, path.path, expected, draft, comment)


def compared(path: str, old: Said, new: Said) -> str:
    """Return a unified diff of what a page said at two versions; a page that was deleted says nothing.

    :raises EditError: if they are so different that comparing them would take long
    """
    before, after = lines_of(old.content or ""), lines_of(new.content or "")
    start = _common(before, after)
    end = _common(before[start:][::-1], after[start:][::-1])
    if (len(before) - start - end) * (len(after) - start - end) > COMPARED:
        raise EditError(
            f"The versions are too different to compare: {len(before)} and {len(after)} lines. "
            "View each with wiki_view and version."
        )
    # What is the same at both ends need not be looked at: but for the lines that are shown around a change.
    first, last = max(start - _CONTEXT, 0), max(end - _CONTEXT, 0)
    changed = unified_diff(
        before[first : len(before) - last], after[first : len(after) - last], *_names(path, old, new), lineterm=""
    )
    return "\n".join(_numbered(line, first) for line in changed)


def _names(path: str, old: Said, new: Said) -> tuple[str, str]:
    return f"{path} version {old.version}", f"{path} version {new.version}"


def _common(one: list[str], other: list[str]) -> int:
    """Return how many lines are the same from the front."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _numbered(line: str, first: int) -> str:
    """Return a line of a diff with its numbers, if it has any, counted from the page's first line."""
    return _HUNK.sub(lambda match: f"{match[1]}{int(match[2]) + first}", line) if line.startswith("@@") else line


def _no_version(path: str, version: int) -> EditError:
    return EditError(f"Page {path} has no version {version}; wiki_history tells which there are.")
