"""The credentials of a collection: one name for each, however many requests use it, and the values that are known."""

from __future__ import annotations

import re
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

from engine.api.importing.examples import is_placeholder
from engine.api.importing.postman_variables import REFERENCE, Expanded, Variables
from engine.api.importing.security import secret_name
from engine.api.operation import Injection

__all__ = ("PostmanCredentials", "authorization")

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9_-]*) +(\S.*)", re.DOTALL)
_Named: TypeAlias = Literal["header", "query", "cookie", "path"]


class PostmanCredentials:
    """Names the secrets of one collection; its ``repr`` shows none of them."""

    def __init__(self) -> None:
        self._taken = {"username", "password"}
        self._names: dict[tuple[str, str | None], str] = {}
        self._about: dict[str, str] = {}
        self._pair: tuple[str, str] | None = None
        self.values: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"<PostmanCredentials {', '.join(self._about) or 'of none'}>"

    def secret(self, wanted: str, text: str, variables: Variables, about: str) -> str:
        """Return the name of the secret that a text is, once its variables are filled.

        It is called as the variable that is all of it, else as wanted.
        """
        value = variables.expanded(text).revealed
        known = self._names.get((text.strip(), value))
        if known is not None:
            return known
        alone = REFERENCE.fullmatch(text.strip())
        name = self._names[text.strip(), value] = secret_name(alone[1] if alone else wanted, self._taken)
        self._taken.add(name)
        self._about[name] = about
        if value and not is_placeholder(value):
            self.values[name] = value
        return name

    def bearer(self, text: str, variables: Variables) -> Injection:
        """Return the place of a bearer token."""
        return Injection(secret=self.secret("token", text, variables, "A bearer token."), place="bearer")

    def named(self, place: _Named, name: str, text: str, variables: Variables, prefix: str = "") -> Injection:
        """Return the place of a secret that has a name on the wire."""
        what = "variable of the path" if place == "path" else place
        secret = self.secret(name, text, variables, f"The value of the {what} {name[:100]}.")
        return Injection(secret=secret, place=place, name=name, prefix=prefix)

    def basic(self, user: str, password: str, variables: Variables) -> Injection:
        """Return the place of a user name and password; a second pair of one collection is one secret, packed."""
        known = [variables.expanded(text).revealed for text in (user, password)]
        stated = (f"{user}\0{known[0]}", f"{password}\0{known[1]}")
        if self._pair is None:
            self._pair = stated
            self._about |= {"username": "The user name.", "password": "The password."}
            for name, value in zip(("username", "password"), known, strict=True):
                if value and not is_placeholder(value):
                    self.values[name] = value
        if self._pair == stated:
            return Injection(place="basic")
        key = ("\0".join(stated), None)
        name = self._names.get(key) or secret_name("basic", self._taken)
        self._names[key] = name
        self._taken.add(name)
        self._about[name] = "A user name and password, joined by a colon, in base64."
        if known[0] is not None and known[1] is not None:
            self.values[name] = b64encode(f"{known[0]}:{known[1]}".encode()).decode()
        return Injection(secret=name, place="header", name="Authorization", prefix="Basic ")

    def requirements(self, used: Iterable[tuple[Injection, ...]]) -> dict[str, dict[str, Any]]:
        """Return the secrets of all these operations; required are those that each of them needs."""
        listed = list(used)
        counted = Counter(secret for each in listed for secret in {name for one in each for name in one.secrets})
        return {
            name: {"type": "string", "description": about, "required": counted[name] == len(listed), "secret": True}
            for name, about in self._about.items()
            if counted[name]
        }


def authorization(text: str, variables: Variables, credentials: PostmanCredentials) -> Injection:
    """Return the place of what an Authorization header says."""
    expanded: Expanded = variables.expanded(text)
    stated = expanded.plain if expanded.plain is not None and not _SCHEME.fullmatch(text) else text
    found = _SCHEME.fullmatch(stated.strip())
    scheme, rest = (found[1], found[2]) if found else ("", stated.strip())
    if scheme.lower() == "bearer":
        return credentials.bearer(rest, variables)
    secret = credentials.secret("authorization", rest, variables, "The value of the Authorization header.")
    return Injection(secret=secret, place="header", name="Authorization", prefix=f"{scheme} " if scheme else "")
