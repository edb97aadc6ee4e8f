"""HTML pages: the article alone, by trafilatura, or everything, by our own reader. Runs in the converter's process."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from msgspec.structs import replace

from engine.readable import readable_text
from engine.web.document import WebDocument, clipped

__all__ = ("read_article", "read_whole")

_SECONDS: Final = 12
_WORTH: Final = 200
"""Characters that an article has at least; what is shorter is a page of another sort, and given whole."""


def read_whole(html: bytes, url: str) -> WebDocument:
    """Return all of a page's text. The bytes are UTF-8."""
    page = readable_text(html.decode("utf-8", "replace"), url)
    text, cut = clipped([page.text])
    return WebDocument(
        form="whole page",
        text=text,
        title=page.title,
        author=page.author,
        date=page.date,
        links=page.links,
        cut=cut,
    )


def read_article(html: bytes, url: str) -> WebDocument:
    """Return the article of a page as Markdown; where none is found, or not in time, all of the page's text."""
    whole = read_whole(html, url)
    found = _article(html.decode("utf-8", "replace"), url)
    if found is None or len(found.text) < _WORTH:
        return whole
    return replace(
        found,
        title=found.title or whole.title,
        author=found.author or whole.author,
        date=found.date or whole.date,
        links=whole.links,
    )


def _article(html: str, url: str) -> WebDocument | None:
    try:
        from trafilatura import extract, extract_metadata

        with _at_most(_SECONDS):
            found = extract(html, url=url, output_format="markdown", include_comments=False)
            stated = extract_metadata(html, default_url=url)
    except Exception:  # whatever a page does to the library, our own reader reads it
        return None
    if not found:
        return None
    text, cut = clipped([found.strip()])
    return WebDocument(
        form="article (trafilatura)",
        text=text,
        title=_line(stated.title),
        author=_line(stated.author),
        date=_line(stated.date),
        cut=cut,
    )


def _line(value: str | None) -> str:
    return " ".join((value or "").split())[:300]


@contextmanager
def _at_most(seconds: int) -> Iterator[None]:
    if not hasattr(signal, "SIGALRM"):
        yield
        return
    signal.signal(signal.SIGALRM, _ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


def _ring(*_: object) -> None:
    raise TimeoutError
