"""Security schemes become the places where credentials go, and the secrets that a row must have."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import starmap
from typing import Any

import msgspec

from engine.api.importing.client_flow import client_token_url, scopes_of
from engine.api.importing.imported import Unimportable
from engine.api.importing.keywords import shortened
from engine.api.importing.resolution import References
from engine.api.operation import SETTINGS, Injection
from engine.refusals import quoted

__all__ = ("Security", "secret_name")

_AUTHORIZATION = "authorization"
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


class _Scheme(msgspec.Struct):
    type: str
    name: str = ""
    place: str = msgspec.field(name="in", default="")
    scheme: str = ""
    description: Any = None


class Security:
    """The security schemes of one document.

    Of several alternatives the first counts that can be satisfied by secrets of a row; an empty one always can. Of
    schemes within one that fill the same header, the first counts.
    """

    def __init__(self, schemes: Any, references: References, base_url: Callable[[], str] = str) -> None:
        """Take the document's schemes by name; what is wrong with one matters only where it is used.

        :param base_url: returns what a relative token URL is relative to; empty: nothing
        """
        self._schemes: dict[str, Any] = schemes if isinstance(schemes, dict) else {}
        self._references = references
        taken = {"username", "password", _AUTHORIZATION}
        self._secrets: dict[str, str] = {}
        for name in self._schemes:
            self._secrets[name] = secret = secret_name(name, taken)
            taken.add(secret)
        self._clients: dict[str, tuple[str, str]] = {}
        for name in self._schemes:
            client = secret_name(f"{name}_client_id", taken), secret_name(f"{name}_client_secret", taken)
            self._clients[name] = client
            taken.update(client)
        self._base_url = base_url
        self._about: dict[str, str] = {}

    def injections(self, alternatives: Any) -> tuple[Injection, ...]:
        """Return where credentials go for a list of alternatives.

        :raises Unimportable: if none of them can be satisfied, with the reason for the first
        """
        faults: list[str] = []
        for alternative in alternatives if isinstance(alternatives, list) else ():
            try:
                return self._all_of(alternative)
            except Unimportable as error:
                faults.append(str(error))
        if faults:
            raise Unimportable(faults[0])
        return ()

    def requirements(self, used: Iterable[tuple[Injection, ...]]) -> dict[str, dict[str, Any]]:
        """Return the secrets of all these operations; required are those that each of them needs."""
        counted: dict[str, int] = {}
        total = 0
        for injections in used:
            total += 1
            for secret in dict.fromkeys(secret for each in injections for secret in each.secrets):
                counted[secret] = counted.get(secret, 0) + 1
        return {
            secret: {
                "type": "string",
                "description": self._about.get(secret, "A credential of the API."),
                "required": count == total,
                "secret": True,
            }
            for secret, count in counted.items()
        }

    def of_authorization_header(self) -> Injection:
        """Return the place of a credential that a document declares as a parameter, not as a scheme."""
        self._about.setdefault(_AUTHORIZATION, "The whole value of the Authorization header.")
        return Injection(secret=_AUTHORIZATION, place="header", name="Authorization")

    def _all_of(self, alternative: Any) -> tuple[Injection, ...]:
        if not isinstance(alternative, dict):
            raise Unimportable("its security requirement is not an object")
        kept: dict[tuple[str, str], Injection] = {}
        for each in starmap(self._injection, alternative.items()):
            # Two that fill the same header cannot both be meant: such documents list alternatives as one.
            place = ("header", each.header) if each.header and each.place != "cookie" else (each.place, each.name)
            kept.setdefault(place, each)
        return tuple(kept.values())

    def _injection(self, name: str, scopes: Any) -> Injection:
        if name not in self._schemes:
            raise Unimportable(f"it needs the security scheme {quoted(name)}, which the document does not define")
        stated = self._references.followed(self._schemes[name])
        try:
            scheme = msgspec.convert(stated, _Scheme)
        except msgspec.ValidationError as error:
            raise Unimportable(f"the security scheme {quoted(name)} is not valid: {error}") from None
        secret = self._secrets[name]
        match scheme.type.lower():
            case "apikey":
                return self._api_key(name, secret, scheme)
            case "http":
                return self._http(name, secret, scheme)
            case "basic":
                return self._basic()
            case "oauth2" if (token_url := client_token_url(stated, self._base_url())) is not None:
                return self._client(name, token_url, scopes)
            case "oauth2" | "openidconnect":
                self._describe(secret, scheme, "An access token (OAuth 2), sent as a bearer token.")
                return Injection(secret=secret, place="bearer")
        raise Unimportable(f"it needs {quoted(scheme.type)} security, which is not supported")

    def _api_key(self, name: str, secret: str, scheme: _Scheme) -> Injection:
        is_header = scheme.place == "header"
        if not scheme.name or (is_header and not _TOKEN.fullmatch(scheme.name)):
            raise Unimportable(f"the security scheme {quoted(name)} names no {scheme.place or 'place'}")
        if scheme.place not in ("header", "query", "cookie"):
            raise Unimportable(f"the security scheme {quoted(name)} is in {quoted(scheme.place)}")
        self._describe(secret, scheme, f"The value of the {scheme.place} {scheme.name}.")
        return msgspec.convert({"secret": secret, "in": scheme.place, "name": scheme.name}, Injection)

    def _http(self, name: str, secret: str, scheme: _Scheme) -> Injection:
        kind = scheme.scheme.lower()
        if kind == "basic":
            return self._basic()
        if kind == "bearer":
            self._describe(secret, scheme, "A bearer token.")
            return Injection(secret=secret, place="bearer")
        raise Unimportable(f"it needs HTTP authentication {quoted(scheme.scheme)} ({name}), which is not supported")

    def _client(self, name: str, token_url: str, scopes: Any) -> Injection:
        client_id, client_secret = self._clients[name]
        for secret, what in ((client_id, "id"), (client_secret, "secret")):
            self._about[secret] = shortened(f"The {what} of the OAuth 2 client; it is sent to {token_url}.")
        return Injection(
            place="oauth2",
            token_url=token_url,
            client_id=client_id,
            client_secret=client_secret,
            scopes=scopes_of(scopes),
        )

    def _basic(self) -> Injection:
        self._about.setdefault("username", "The user name for HTTP basic authentication.")
        self._about.setdefault("password", "The password for HTTP basic authentication.")
        return Injection(place="basic")

    def _describe(self, secret: str, scheme: _Scheme, otherwise: str) -> None:
        stated = scheme.description
        self._about[secret] = shortened(stated) if isinstance(stated, str) and stated.strip() else otherwise


def secret_name(name: str, taken: Iterable[str]) -> str:
    """Return the name of a secret for a scheme or a header, in snake case, other than those taken and settings."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    base = re.sub(r"[^a-z0-9]+", "_", parted.lower()).strip("_")[:60] or "secret"
    known, number, secret = {*SETTINGS, *taken}, 1, base
    while secret in known:
        number += 1
        secret = f"{base}_{number}"
    return secret
