"""A web page as text to read: headings, paragraphs, lists and tables, without scripts, styles and markup."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Final
from urllib.parse import urljoin

import msgspec

__all__ = ("Readable", "WebLink", "decoded", "readable_text")

_BLOCK: Final = re.compile(
    "address|article|aside|blockquote|body|dd|details|dialog|div|dl|dt|fieldset|figcaption|figure|footer|form|header|hr|"
    "main|nav|ol|p|pre|section|summary|table|tbody|tfoot|thead|tr|ul"
)
_HEADINGS: Final = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
_DROPPED: Final = frozenset(("script", "style", "template", "noscript", "svg", "math", "iframe", "object", "select"))
_META_CHARSET: Final = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?([\w.:-]{1,40})""", re.IGNORECASE)
_XML_ENCODING: Final = re.compile(rb"""^\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]{1,40})""")
# Names of codecs that are no character sets, or slow: as the web's own rules have it, no page is written in them.
_NO_CHARSETS: Final = frozenset(
    ("idna", "mbcs", "oem", "punycode", "raw_unicode_escape", "undefined", "unicode_escape", "utf-7")
)
_AS_BROWSERS: Final = {"iso8859-1": "cp1252", "ascii": "cp1252"}
_AUTHOR: Final = ("author", "dc.creator", "article:author", "og:article:author")
_DATE: Final = ("article:published_time", "date", "dc.date", "dcterms.date", "datepublished", "pubdate")
_LINKS: Final = 1_000
_LINK_TEXT: Final = 200
_LONGEST_LINK: Final = 2_000
_SECTION: Final = re.compile(r"<!\[[^>]*>?")
_BLANKS: Final = re.compile(r"[^\S\n]+")
_EDGES: Final = re.compile(r" ?\n ?")
_GAPS: Final = re.compile(r"\n{3,}")


class WebLink(msgspec.Struct, frozen=True):
    """A link's text ("" if it has none) and where it leads."""

    text: str
    url: str


class Readable(msgspec.Struct, frozen=True, kw_only=True):
    """A page's text and what it says of itself ("" where it says nothing).

    :ivar links: each address once, in the page's order, at most a thousand
    """

    title: str
    text: str
    author: str = ""
    date: str = ""
    links: tuple[WebLink, ...] = ()


def decoded(body: bytes, charset: str | None) -> str:
    """Return a body as text: by its byte order mark, the declared charset, what the page itself says, else UTF-8.

    A charset that is none is passed over. What cannot be decoded becomes U+FFFD; NULs are left out.
    """
    for mark, name in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if body.startswith(mark):
            return body.decode(name, "replace").replace("\0", "")
    return body.decode(_codec(charset) or _own_codec(body) or "utf-8", "replace").replace("\0", "")


def _codec(charset: str | None) -> str | None:
    if not charset:
        return None
    try:
        b"x".decode(charset, "ignore")  # refuses codecs that make no text
        name = codecs.lookup(charset).name
    except (LookupError, ValueError):
        return None
    return None if name in _NO_CHARSETS else _AS_BROWSERS.get(name, name)


def _own_codec(body: bytes) -> str | None:
    found = _META_CHARSET.search(body[:4096]) or _XML_ENCODING.search(body[:400])
    name = _codec(found[1].decode("ascii")) if found else None
    # Whoever could read this, reads no wide characters.
    return None if name is None or name.startswith(("utf-16", "utf-32")) else name


def readable_text(html: str, url: str = "") -> Readable:
    """Return what a reader of the page would see, as text, and what it says of itself.

    :param url: what its links are relative to; without it, only those that are whole are given out
    """
    reader = _Reader()
    # Sections (``<![CDATA[``) are no HTML, and the parser stumbles over broken ones.
    html = _SECTION.sub("", html)
    # Never closed: closing looks at every unfinished tag again, which a hostile page makes quadratic. The tag that is
    # added pushes out the text before it.
    reader.feed(html + "<hr>")
    return Readable(
        title=_tidy(reader.title) or reader.stated("og:title"),
        text=_tidy("".join(reader.parts)),
        author=reader.stated(*_AUTHOR),
        date=reader.stated(*_DATE)[:40],
        links=tuple(_absolute(reader.links, _joined(url, reader.base))),
    )


def _joined(url: str, target: str) -> str:
    try:
        return urljoin(url, target)
    except ValueError:
        return url


def _absolute(links: list[tuple[str, str]], base: str) -> Iterator[WebLink]:
    seen: set[str] = set()
    for text, target in links:
        address = _joined(base, target.strip()).partition("#")[0]
        if address.startswith(("http://", "https://")) and len(address) <= _LONGEST_LINK and address not in seen:
            seen.add(address)
            yield WebLink(_tidy(text).replace("\n", " ")[:_LINK_TEXT], address)


class _Reader(HTMLParser):
    """Collects text; ``parts`` has line breaks where blocks begin and end."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.links: list[tuple[str, str]] = []
        self.title = ""
        self.base = ""
        self._stated: dict[str, str] = {}
        self._link: tuple[str, int] | None = None
        self._in_title = False
        self._preformatted = False
        self._dropping = ""
        self._depth = 0

    def stated(self, *names: str) -> str:
        """Return what the page's ``meta`` say under the first of these names."""
        return next((self._stated[name] for name in names if name in self._stated), "")

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
        elif tag in ("a", "base", "img", "meta"):
            self._attributed(tag, dict(attrs))
        elif _BLOCK.fullmatch(tag):
            self._preformatted = self._preformatted or tag == "pre"
            self.parts.append("\n\n" if tag != "tr" else "\n")

    def handle_endtag(self, tag: str) -> None:
        if self._dropping:
            self._depth -= tag == self._dropping
            self._dropping = self._dropping if self._depth > 0 else ""
        elif tag == "title":
            self._in_title = False
        elif tag == "a":
            self._end_link()
        elif tag in _HEADINGS or _BLOCK.fullmatch(tag):
            self._preformatted = self._preformatted and tag != "pre"
            self.parts.append("\n\n" if tag != "tr" else "")

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title += data
        elif not self._dropping:
            self.parts.append(data if self._preformatted else re.sub(r"\s+", " ", data))

    def _attributed(self, tag: str, attrs: dict[str, str | None]) -> None:
        if tag == "a":
            self._end_link()
            self._link = (attrs.get("href") or "", len(self.parts))
        elif tag == "base":
            self.base = self.base or (attrs.get("href") or "")[:_LONGEST_LINK]
        elif tag == "img" and (text := attrs.get("alt")):
            self.parts.append(f"[{text}]")
        elif tag == "meta" and (content := _tidy(attrs.get("content") or "")):
            name = attrs.get("name") or attrs.get("property") or attrs.get("itemprop") or ""
            self._stated.setdefault(name.lower(), content.replace("\n", " ")[:300])

    def _end_link(self) -> None:
        if self._link is not None and self._link[0] and len(self.links) < _LINKS:
            target, place = self._link
            self.links.append(("".join(self.parts[place : place + 20]), target))
        self._link = None


def _tidy(text: str) -> str:
    return _GAPS.sub("\n\n", _EDGES.sub("\n", _BLANKS.sub(" ", text))).strip()
