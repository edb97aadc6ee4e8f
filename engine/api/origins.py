"""Origins: the scheme, host and port that a row's credentials are for, and no others (TOOLS 23.4)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from engine.refusals import quoted
from events.errors import Refused

__all__ = ("guarded_origins", "origin_of", "require_trusted", "stated_origin", "url_fault")

_HOST: Final = re.compile(r"[a-z0-9_.-]+|[0-9a-f:.]+")


def origin_of(url: str) -> str:
    """Return a URL's origin as origins are compared: read as the client reads it, a port that is the scheme's left out.

    :raises Refused: if it has none
    """
    # Imported here: the HTTP client is a tenth of a second that the catalogue need not cost.
    import httpx

    try:
        parsed = httpx.URL(url)
        host = parsed.raw_host.decode("ascii").lower().removesuffix(".")
    except (httpx.InvalidURL, ValueError, TypeError):
        raise Refused("The URL is not valid.") from None
    if parsed.scheme not in ("http", "https") or not host or parsed.userinfo:
        raise Refused("The URL must be absolute, with http:// or https://, and without a user name.")
    if not _HOST.fullmatch(host) or not 0 < (1 if parsed.port is None else parsed.port) < 65_536:
        raise Refused("The URL has a host or port that cannot be called.")
    port = "" if parsed.port is None else f":{parsed.port}"
    return f"{parsed.scheme}://{f'[{host}]' if ':' in host else host}{port}"


def url_fault(url: str) -> str | None:
    """Return what is wrong with a configured URL, whose path and query may have variables; None: nothing."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return "is not valid"
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return "must be absolute, with http:// or https://"
    if "@" in parts.netloc:
        return "carries a user name or password: give it as the row's credentials"
    if "{" in parts.netloc:
        # Whoever fills it would choose where the credentials go.
        return "has a variable in its host: a host cannot be an argument"
    if "#" in url:
        return "has a fragment (#…), which is never sent"
    if any(char < " " or char == "\x7f" for char in url):
        return "has control characters"
    try:
        origin_of(url)
    except Refused:
        return "has a host that cannot be called"
    return None


def stated_origin(text: object) -> str:
    """Return an origin that a row's owner states. :raises Refused: if it says more, or less, than an origin"""
    stated = text if isinstance(text, str) else ""
    _, _, rest = stated.partition("://")
    host, _, path = rest.partition("/")
    if not host or path or any(char in host for char in "?#"):
        raise Refused(f"{quoted(stated or '(no text)')} is no origin: write it as https://api.example.")
    try:
        return origin_of(stated)
    except Refused:
        raise Refused(f"{quoted(stated)} is no origin: write it as https://api.example.") from None


def require_trusted(trusted: Iterable[str], urls: Iterable[str]) -> None:
    """Make sure that credentials go where their row's owner said they may.

    :param urls: where they would go
    :raises Refused: if they may not go there
    """
    known = frozenset(map(stated_origin, trusted))
    for origin in map(origin_of, urls):
        if origin not in known:
            raise Refused(
                f"The tool's credentials are not for {origin}: nothing was sent. If they may go there, its owner adds "
                "it to trusted_origins."
            )


def guarded_origins(actions: dict[str, Any], security: Iterable[Any]) -> Iterator[tuple[str, str]]:
    """Yield (action's name, origin) of the configured actions that take credentials, of where tokens are given too.

    What is none is left out.

    :param security: injections, or their JSON form, of actions that say nothing of their own
    """
    shared = msgspec.to_builtins(list(security))
    for name, definition in actions.items():
        # As for the tool itself, null is said, and is none.
        own = (definition.get("security", shared) or ()) if isinstance(definition, dict) else ()
        tokens = [each.get("token_url") for each in own if isinstance(each, dict)]
        for url in [definition.get("url"), *filter(None, tokens)] if own else ():
            with suppress(Refused):
                yield name, origin_of(url)
