"""A web page as text to read: headings, paragraphs, lists and tables, without scripts, styles and markup."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Final

import msgspec

__all__ = ("Readable", "decoded", "readable_text")

_BLOCK: Final = re.compile(
    "address|article|aside|blockquote|body|dd|details|dialog|div|dl|dt|fieldset|figcaption|figure|footer|form|header|hr|"
    "main|nav|ol|p|pre|section|summary|table|tbody|tfoot|thead|tr|ul"
)
_HEADINGS: Final = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
_DROPPED: Final = frozenset(("script", "style", "template", "noscript", "svg", "math", "iframe", "object", "select"))
_META_CHARSET: Final = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?([\w.:-]{1,40})""", re.IGNORECASE)
_SECTION: Final = re.compile(r"<!\[[^>]*>?")
_BLANKS: Final = re.compile(r"[^\S\n]+")
_EDGES: Final = re.compile(r" ?\n ?")
_GAPS: Final = re.compile(r"\n{3,}")


class Readable(msgspec.Struct, frozen=True):
    """A page's title ("" if it has none) and its text."""

    title: str
    text: str


def decoded(body: bytes, charset: str | None) -> str:
    """Return a body as text: by its byte order mark, the declared charset, the page's own ``meta``, else UTF-8.

    What cannot be decoded becomes U+FFFD.
    """
    for mark, name in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if body.startswith(mark):
            return body.decode(name, "replace")
    if charset is None and (found := _META_CHARSET.search(body[:2048])):
        charset = found[1].decode("ascii")
    try:
        return body.decode(charset or "utf-8", "replace")
    except (LookupError, ValueError):
        return body.decode("utf-8", "replace")


def readable_text(html: str) -> Readable:
    """Return what a reader of the page would see, as text, and its title."""
    reader = _Reader()
    # Sections (``<![CDATA[``) are no HTML, and the parser stumbles over broken ones.
    html = _SECTION.sub("", html)
    # Never closed: closing looks at every unfinished tag again, which a hostile page makes quadratic. The tag that is
    # added pushes out the text before it.
    reader.feed(html + "<hr>")
    return Readable(_tidy(reader.title), _tidy("".join(reader.parts)))


class _Reader(HTMLParser):
    """Collects text; ``parts`` has line breaks where blocks begin and end."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.title = ""
        self._in_title = False
        self._preformatted = False
        self._dropping = ""
        self._depth = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._dropping:
            self._depth += tag == self._dropping
        elif tag in _DROPPED:
            self._dropping, self._depth = tag, 1
        elif tag == "title":
            self._in_title = not self.title
        elif tag == "br":
            self.parts.append("\n")
        elif tag == "li":
            self.parts.append("\n- ")
        elif tag in _HEADINGS:
            self.parts.append(f"\n\n{'#' * int(tag[1])} ")
        elif tag in ("td", "th"):
            self.parts.append(" | ")
        elif tag == "img":
            self._alternative(attrs)
        elif _BLOCK.fullmatch(tag):
            self._preformatted = self._preformatted or tag == "pre"
            self.parts.append("\n\n" if tag != "tr" else "\n")

    def handle_endtag(self, tag: str) -> None:
        if self._dropping:
            self._depth -= tag == self._dropping
            self._dropping = self._dropping if self._depth > 0 else ""
        elif tag == "title":
            self._in_title = False
        elif tag in _HEADINGS or _BLOCK.fullmatch(tag):
            self._preformatted = self._preformatted and tag != "pre"
            self.parts.append("\n\n" if tag != "tr" else "")

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title += data
        elif not self._dropping:
            self.parts.append(data if self._preformatted else re.sub(r"\s+", " ", data))

    def _alternative(self, attrs: list[tuple[str, str | None]]) -> None:
        text = dict(attrs).get("alt")
        if text:
            self.parts.append(f"[{text}]")


def _tidy(text: str) -> str:
    return _GAPS.sub("\n\n", _EDGES.sub("\n", _BLANKS.sub(" ", text))).strip()
