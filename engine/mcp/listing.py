"""A server's whole list of tools, page by page."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from engine.mcp.definitions import Definition

__all__ = ("MOST_PAGES", "MOST_TOOLS", "Page", "list_all")

_log = logging.getLogger("calljournal.mcp")

MOST_PAGES: Final = 200
MOST_TOOLS: Final = 5000

Page = Callable[[str | None], Awaitable[Any]]
"""Asks for the page at a cursor (None: the first) and returns the server's answer as it came."""


async def list_all(page: Page, address: str) -> dict[str, Definition]:
    """Return the tools by name, in the server's order; the first of a name counts.

    Cursors go back as they came, the empty one too. A cursor that comes again, or too many pages, end the list with a
    warning. An entry that is no tool is left out, with a warning.

    :param address: the server's, for warnings
    """
    found: dict[str, Definition] = {}
    seen: set[str] = set()
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        answer = await page(cursor)
        _take(answer, found, address)
        cursor = answer.get("nextCursor") if isinstance(answer, dict) else None
        if not isinstance(cursor, str):
            return found
        if cursor in seen or len(found) >= MOST_TOOLS:
            _log.warning("%s: its list of tools does not end; the %d tools seen are used", address, len(found))
            return found
        seen.add(cursor)
    _log.warning("%s: its list of tools has over %d pages; the rest is left out", address, MOST_PAGES)
    return found


def _take(answer: Any, found: dict[str, Definition], address: str) -> None:
    tools = answer.get("tools") if isinstance(answer, dict) else None
    for content in tools if isinstance(tools, list) else ():
        definition = Definition.of(content)
        if definition is None:
            _log.warning("%s: an entry of its list is no tool, and is left out", address)
        elif len(found) < MOST_TOOLS:
            found.setdefault(definition.name, definition)
