"""OAuth 2 client credentials (RFC 6749, 4.4): what a token is asked for with, and the request that asks."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable
from hashlib import sha256
from typing import Final, Literal, TypeAlias
from urllib.parse import quote_plus, urlencode, urlsplit

import msgspec

from engine.api.origins import url_fault
from engine.refusals import quoted

__all__ = ("ClientAuth", "ClientCredentials", "scope_fault", "token_url_fault")

ClientAuth: TypeAlias = Literal["basic", "body"]
"""How a client says who it is: in the Authorization header, or in the body (RFC 6749, 2.3.1)."""

_SCOPE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")
_FORM: Final = "application/x-www-form-urlencoded"


class ClientCredentials(msgspec.Struct, frozen=True, kw_only=True):
    """All that decides which token a client is given. Its ``repr`` shows no more than where that is asked for.

    :ivar audience: sent where it is not empty; no RFC has it, many servers do
    :ivar resource: RFC 8707
    """

    token_url: str
    client_id: str
    client_secret: str
    scopes: tuple[str, ...] = ()
    audience: str = ""
    resource: str = ""
    client_auth: ClientAuth = "basic"

    def __repr__(self) -> str:
        return f"<ClientCredentials for {self.host}>"

    @property
    def host(self) -> str:
        """Where the token is asked for, for texts."""
        return urlsplit(self.token_url).hostname or "the token URL"

    @property
    def digest(self) -> str:
        """A digest of all of it: another secret or another scope is another token."""
        return sha256(msgspec.json.encode(msgspec.structs.astuple(self))).hexdigest()

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """The headers of the request for a token."""
        own = (("Accept", "application/json"), ("Content-Type", _FORM))
        return own if self.client_auth == "body" else (*own, ("Authorization", f"Basic {self._packed}"))

    @property
    def content(self) -> bytes:
        """The body of the request for a token."""
        fields = {
            "grant_type": "client_credentials",
            "scope": " ".join(self.scopes),
            "audience": self.audience,
            "resource": self.resource,
        }
        if self.client_auth == "body":
            fields |= {"client_id": self.client_id, "client_secret": self.client_secret}
        return urlencode({name: value for name, value in fields.items() if value}).encode()

    @property
    def forms(self) -> dict[str, str]:
        """The texts in which a server that quotes its request has the secrets, besides the secrets themselves."""
        return {
            "form client_id": quote_plus(self.client_id),
            "form client_secret": quote_plus(self.client_secret),
            "basic client": self._packed,
        }

    @property
    def _packed(self) -> str:
        return b64encode(f"{quote_plus(self.client_id)}:{quote_plus(self.client_secret)}".encode()).decode()


def token_url_fault(url: str) -> str | None:
    """Return what is wrong with a token URL, which is literal and without a fragment (RFC 6749, 3.2); None: nothing."""
    if "{" in url or "}" in url:
        return "has a brace: it takes no variables"
    if " " in url:
        return "has blanks"
    return url_fault(url)


def scope_fault(scopes: Iterable[str]) -> str | None:
    """Return which scope cannot be one (RFC 6749, 3.3); None: all can."""
    wrong = next((each for each in scopes if not _SCOPE.fullmatch(each)), None)
    return None if wrong is None else f"{quoted(wrong)} is no scope: it has blanks, quotes or characters beyond ASCII"
