"""Credentials put into a request at the moment it is sent, and nowhere kept (CASES OTEL-03)."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol
from urllib.parse import quote

import msgspec

from engine.api.client_credentials import ClientCredentials
from engine.api.headers import Header, header_name, header_value
from engine.api.operation import Injection
from engine.api.path import VARIABLE
from engine.refusals import quoted
from events.errors import Refused

__all__ = ("MASK", "Signed", "Unsigned", "client_of", "masked", "secrets_of", "signed")

MASK: Final = "***"


class Unsigned(Protocol):
    """What is signed: a request without its credentials."""

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        ...

    @property
    def path(self) -> str:
        """With ``{name}`` where a credential goes."""
        ...

    @property
    def query(self) -> str:
        """Without the ``?``."""
        ...

    @property
    def headers(self) -> tuple[Header, ...]:
        """Without credentials."""
        ...

    @property
    def cookies(self) -> tuple[str, ...]:
        """``name=value`` each."""
        ...

    @property
    def security(self) -> tuple[Injection, ...]:
        """Where the credentials go."""
        ...


class Signed(msgspec.Struct, frozen=True):
    """A request's URL and headers with its credentials in them; its ``repr`` shows neither.

    :ivar secret_headers: the names, in lower case, of headers that carry credentials
    """

    url: str
    headers: tuple[Header, ...]
    secret_headers: frozenset[str]

    def __repr__(self) -> str:
        return "<Signed>"

    def bearing(self, token: str) -> Signed:
        """Return it with an access token besides."""
        header = ("Authorization", header_value("Authorization", f"Bearer {token}"))
        return Signed(self.url, (*self.headers, header), self.secret_headers | {"authorization"})


def secrets_of(security: Iterable[Injection], credentials: Mapping[str, Any]) -> dict[str, str]:
    """Return the secrets that are needed, as text. :raises Refused: if one is not there; no value is shown"""
    found: dict[str, str] = {}
    for injection in security:
        for name in injection.secrets:
            value = credentials.get(name)
            if value in (None, "") and name == "password" and injection.place == "basic":
                # Some APIs take a key as the user name, and no password.
                value = ""
            elif value in (None, ""):
                raise Refused(f"The tool has no credential {quoted(name)}: its owner must add it.")
            found[name] = str(value)
    return found


def client_of(security: Iterable[Injection], secrets: Mapping[str, str]) -> ClientCredentials | None:
    """Return what an access token is asked for with; None: none is needed."""
    for each in security:
        if each.place == "oauth2":
            return ClientCredentials(
                token_url=each.token_url,
                client_id=secrets[each.client_id],
                client_secret=secrets[each.client_secret],
                scopes=each.scopes,
                audience=each.audience,
                resource=each.resource,
                client_auth=each.client_auth,
            )
    return None


def masked(security: Iterable[Injection]) -> dict[str, str]:
    """Return :data:`MASK` for each secret."""
    return {name: MASK for injection in security for name in injection.secrets}


def signed(request: Unsigned, secrets: Mapping[str, str]) -> Signed:
    """Return a request with its credentials; they go to its origin only, for that is all its URL can name.

    What they are exchanged for first is added by :meth:`Signed.bearing`.

    :raises Refused: if a secret cannot stand where it goes; it is not shown
    """
    path, queries, cookies = request.path, [request.query], list(request.cookies)
    headers: list[Header] = []
    segments: dict[str, str] = {}
    for injection in request.security:
        if injection.place == "oauth2":
            continue
        value = "" if injection.place == "basic" else injection.prefix + secrets[injection.secret]
        if injection.place == "path":
            segments[injection.name] = _segment(injection, value)
        elif injection.place == "query":
            queries.append(f"{quote(injection.name, safe='')}={quote(value, safe='*')}")
        elif injection.place == "cookie":
            cookies.append(f"{quote(injection.name, safe='')}={quote(value, safe='*')}")
        else:
            headers.append(_header(injection, value, secrets))
    if cookies:
        headers.append(("Cookie", "; ".join(cookies)))
    path = VARIABLE.sub(lambda found: segments[found[1]], path)
    query = "&".join([part for part in queries if part])
    return Signed(
        f"{request.origin}{path}{'?' if query else ''}{query}",
        (*request.headers, *headers),
        frozenset(name.lower() for name, _ in headers),
    )


def _segment(injection: Injection, value: str) -> str:
    if value in (".", ".."):
        raise Refused(f"The credential {quoted(injection.secret)} cannot be part of a path.")
    return quote(value, safe="*")


def _header(injection: Injection, value: str, secrets: Mapping[str, str]) -> Header:
    name = injection.name if injection.place == "header" else "Authorization"
    if injection.place == "bearer":
        value = f"Bearer {value}"
    elif injection.place == "basic":
        pair = [secrets[each] for each in injection.secrets]
        if ":" in pair[0]:
            raise Refused('The credential "username" has a colon, which Basic authentication cannot carry.')
        packed = MASK if pair == [MASK, MASK] else b64encode(":".join(pair).encode()).decode()
        value = f"Basic {packed}"
    return header_name(name), header_value(name, value)
