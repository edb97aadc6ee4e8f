"""One request on its way, and what becomes of it when it is redirected (RFC 9110, 15.4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

import httpx
import msgspec

from engine.net.body import ACCEPTED
from engine.net.errors import BadResponse, UnsafeUserUrlError
from engine.net.field_lines import CREDENTIALS, FRAMING
from engine.net.reply import Headers

__all__ = ("HeadersLike", "Outgoing", "is_redirect", "parsed_url")

HeadersLike: TypeAlias = Mapping[str, str] | Iterable[tuple[str, str]]

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


class Outgoing(msgspec.Struct, frozen=True):
    """A request as it is sent to one place."""

    method: str
    url: httpx.URL
    headers: Headers
    content: bytes | None
    hops: int = 0

    @classmethod
    def of(cls, method: str, url: str, headers: HeadersLike, content: bytes | None, user_agent: str) -> Outgoing:
        """Take a caller's request; headers that frame a message are left out.

        :raises UnsafeUserUrlError: if the URL is none
        """
        given = headers.items() if isinstance(headers, Mapping) else headers
        kept = tuple((name, value) for name, value in given if name.lower() not in FRAMING)
        named = {name.lower() for name, _ in kept}
        filled = (("User-Agent", user_agent), ("Accept", "*/*"), ("Accept-Encoding", ACCEPTED))
        added = tuple(each for each in filled if each[0].lower() not in named)
        return cls(method.upper(), parsed_url(url), added + kept, content)

    def redirected(self, status: int, location: str, secret_headers: frozenset[str]) -> Outgoing:
        """Return the request that follows a redirect.

        To another origin (scheme, host, port) go no credentials, neither the well-known ones nor those of
        ``secret_headers``, and no body: it may hold some.

        :raises UnsafeUserUrlError: if the target is no URL
        :raises BadResponse: if the body would have to be sent to another origin
        """
        url = parsed_url(location, self.url)
        method, content, headers = self.method, self.content, self.headers
        if _is_rewritten(status, method):
            method, content = "GET", None
            headers = tuple(each for each in headers if not each[0].lower().startswith("content-"))
        if _origin(url) != _origin(self.url):
            if content:
                raise BadResponse("it redirects a request with a body to another host, which is not followed")
            withheld = CREDENTIALS.union(map(str.lower, secret_headers))
            headers = tuple(each for each in headers if each[0].lower() not in withheld)
        return Outgoing(method, url, headers, content, self.hops + 1)


def is_redirect(status: int) -> bool:
    """Tell whether a status sends a client elsewhere."""
    return status in _REDIRECTS


def _is_rewritten(status: int, method: str) -> bool:
    """Whether the next request is a GET: after 303 of all but HEAD, and after 301 and 302 of POST."""
    return (status == 303 and method not in ("GET", "HEAD")) or (status in (301, 302) and method == "POST")


def _origin(url: httpx.URL) -> tuple[str, bytes, int | None]:
    return url.scheme, url.raw_host, url.port


def parsed_url(url: str, base: httpx.URL | None = None) -> httpx.URL:
    """Return a URL as it is opened, without its fragment. :raises UnsafeUserUrlError: if it is none"""
    try:
        parsed = httpx.URL(url) if base is None else base.join(url)
        # Decoded only when it is looked at, which a request does: "xn--" that stands for nothing fails there.
        _ = parsed.host
    except (httpx.InvalidURL, ValueError, TypeError):
        said = "it is not a valid URL" if base is None else "it redirects to what is not a valid URL"
        raise UnsafeUserUrlError("malformed", said) from None
    return parsed.copy_with(fragment=None) if parsed.fragment else parsed
