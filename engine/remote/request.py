"""One request to a tool's service; built once with its secrets to be sent, once with masks to be looked at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import msgspec

from engine.api.preview import Preview
from engine.refusals import quoted
from events.errors import Refused

__all__ = ("MASK", "RemoteRequest", "service_address")

MASK: Final = "***"
"""Stands for a secret in a request that is looked at."""


class RemoteRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Method, URL, headers and body as they go out; ``repr`` shows none of them, for any may hold a secret."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    content: bytes | None = None

    def __repr__(self) -> str:
        return f"<RemoteRequest {self.method}>"

    def preview(self) -> str:
        """Return the request as HTTP/1.1 has it; only one that was built with masks may be shown."""
        return str(Preview.of(self.method, self.url, self.headers, self.content))

    @classmethod
    def get(cls, url: str, query: Mapping[str, str], headers: Mapping[str, str] | None = None) -> RemoteRequest:
        """Return a GET; names and values of the query are encoded, so that none reaches beyond its place."""
        whole = f"{url}?{urlencode(query)}" if query else url
        return cls(method="GET", url=whole, headers=(("Accept", "application/json"), *(headers or {}).items()))

    @classmethod
    def post_json(cls, url: str, body: dict[str, Any], headers: Mapping[str, str] | None = None) -> RemoteRequest:
        """Return a POST of JSON in UTF-8."""
        own = (("Accept", "application/json"), ("Content-Type", "application/json"))
        return cls(method="POST", url=url, headers=(*own, *(headers or {}).items()), content=msgspec.json.encode(body))


def service_address(config: Mapping[str, Any], key: str, default: str) -> str:
    """Return a service's address from its row's configuration, without a slash at its end.

    :raises Refused: if it is no plain http(s) address; it is not quoted, for people put credentials there
    """
    address = config.get(key) or default
    if not isinstance(address, str) or not _is_plain(address):
        raise Refused(f"The tool's setting {quoted(key)} must be an http(s) address without user, query and fragment.")
    return address.rstrip("/")


def _is_plain(address: str) -> bool:
    try:
        parts = urlsplit(address)
        parts.port  # noqa: B018  # it is read when it is asked for
    except ValueError:
        return False
    bare = "@" not in parts.netloc and "?" not in address and "#" not in address
    return parts.scheme in ("http", "https") and bool(parts.hostname) and bare and address.isprintable()
