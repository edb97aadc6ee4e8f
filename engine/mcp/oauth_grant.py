"""What a consent gave: tokens, the client they were given to, and where they are renewed; and what it is kept by."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import httpx
import msgspec

from events.errors import Refused
from events.keys import require_storable

__all__ = ("Grant", "canonical_url", "parse_scopes", "stale_at")

_SCOPE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")

_MARGIN: Final = 10.0
"""Seconds before its end from which on a token is renewed: its request is still to travel."""


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """One owner's access to one server. Its ``repr`` shows none of it.

    :ivar consent: which consent it goes back to, through all its renewals
    :ivar scope: what was granted, between blanks; None: the server did not say
    :ivar stale_at: when to renew it, seconds since the epoch; None: the server named no end
    :ivar client_metadata: the registration (RFC 7591), as mcp keeps it
    :ivar server_metadata: the authorization server's metadata document (RFC 8414); None: it has none
    :ivar resource_metadata: the resource's metadata document (RFC 9728); None: it has none
    :ivar protocol_version: of MCP; it decides whether a renewal names the resource (RFC 8707)
    :ivar refused: the error code with which the authorization server withdrew it; None: it did not
    """

    consent: str
    access_token: str
    refresh_token: str | None = None
    scope: str | None = None
    stale_at: float | None = None
    client_metadata: dict[str, Any]
    server_metadata: dict[str, Any] | None = None
    resource_metadata: dict[str, Any] | None = None
    protocol_version: str | None = None
    refused: str | None = None

    def __repr__(self) -> str:
        state = f"refused ({self.refused})" if self.refused else f"stale at {self.stale_at}"
        return f"<Grant {state}{', renewable' if self.refresh_token else ''}>"

    def serves(self, now: float, rejected: str | None) -> bool:
        """Tell whether its token may be sent.

        :param now: seconds since the epoch
        :param rejected: a token that the server has just turned down
        """
        fresh = self.stale_at is None or now < self.stale_at
        return fresh and self.refused is None and self.access_token != rejected


def stale_at(now: float, lifetime: float | None) -> float | None:
    """Return when a token is to be renewed that was given for ``lifetime`` seconds; None: it has no end."""
    return None if lifetime is None else now + lifetime - min(_MARGIN, lifetime / 10)


def canonical_url(server_url: str) -> str:
    """Return the one spelling of a server's URL, its path and query included, its fragment not.

    :raises Refused: if it is no http or https URL, carries a user name or password, or is too long to be kept
    """
    try:
        url = httpx.URL(server_url)
        host = url.host
    except (httpx.InvalidURL, ValueError, TypeError):
        raise Refused("server_url is not a valid URL") from None
    if url.scheme not in ("http", "https") or not host:
        raise Refused("server_url must be an http or https URL with a host")
    if url.userinfo:
        raise Refused("server_url must not carry a user name or password")
    if not re.fullmatch(r"[a-z0-9._:-]+", url.raw_host.decode("ascii")):
        raise Refused("server_url has a host that is none")
    if url.port == {"http": 80, "https": 443}[url.scheme]:
        url = url.copy_with(port=None)
    canonical = f"{url.scheme}://{url.netloc.decode('ascii')}{url.raw_path.decode('ascii')}"
    require_storable(canonical, "server_url")
    return canonical


def parse_scopes(scopes: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the scopes of a configuration: a list, or a text with commas or blanks between them; each once.

    :raises Refused: if it is neither, or a scope is none (RFC 6749, 3.3)
    """
    given = [scopes] if isinstance(scopes, str) else list(scopes or ())
    if not all(isinstance(each, str) for each in given):
        raise Refused("oauth_scopes must be a list of texts, or one text with commas or blanks between the scopes")
    found = tuple(dict.fromkeys(scope for each in given for scope in re.split(r"[,\s]+", each) if scope))
    if not all(map(_SCOPE.fullmatch, found)):
        raise Refused("oauth_scopes holds a scope with characters that a scope cannot have")
    return found
