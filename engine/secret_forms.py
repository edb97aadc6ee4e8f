"""The texts in which a row's secrets may appear: as they are, as a URL or JSON has them, in base64, in Basic's header.

A vendor's prefix plays no part: what is looked for is the value itself.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final
from urllib.parse import quote, quote_plus

import msgspec

from engine.credentials import Credentials

__all__ = ("LEAST", "SecretForm", "SecretForms")

LEAST: Final = 4
"""Characters of a secret that is looked for: shorter ones stand in nearly every text."""

_CORE: Final = 6
"""Characters of base64 that are enough to know a secret by, wherever in an encoded text it stands."""

_STARTS: Final = (0, 2, 3)
"""Characters of base64 that belong in part to what stands before a secret: nothing, one byte, two bytes."""


class SecretForm(msgspec.Struct, frozen=True):
    """One secret in one form.

    :ivar name: of the credential; within another, joined by full stops
    :ivar form: which form; empty: as it is
    """

    name: str
    form: str
    text: str


class SecretForms:
    """The secrets of one row, in every form that is known."""

    def __init__(self, credentials: Credentials) -> None:
        self._by_text: dict[str, SecretForm] = {}
        for form in _forms(credentials):
            # The first is the plainest.
            self._by_text.setdefault(form.text, form)
        self._texts = {(each.name, each.form): each.text for each in self._by_text.values()}
        longest = sorted(self._by_text, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest))) if longest else None

    def __repr__(self) -> str:
        return f"<SecretForms of {', '.join(sorted({name for name, _ in self._texts})) or 'nothing'}>"

    def stand_in(self, text: str) -> bool:
        """Tell whether one of them stands in a text."""
        return any(form in text for form in self._by_text)

    def holds(self, text: str) -> bool:
        """Tell whether a text is one of them and nothing else."""
        return text in self._by_text

    def replaced(self, text: str, put: Callable[[SecretForm], str]) -> str:
        """Return a text with something else put in the place of each of them."""
        if self._pattern is None or not self.stand_in(text):
            return text
        return self._pattern.sub(lambda match: put(self._by_text[match.group()]), text)

    def text_of(self, name: str, form: str) -> str | None:
        """Return a secret in a form; None: there is none."""
        return self._texts.get((name, form))


def _forms(credentials: Credentials) -> Iterator[SecretForm]:
    names = set[str]()
    for name, secret in _secrets(credentials, ""):
        while name in names:
            # ``a.b`` may be one key, or one within another.
            name = f"{name}_"
        names.add(name)
        for form, text in _of_text(secret):
            if text:
                yield SecretForm(name, form, text)
    yield from _basic(credentials)


def _secrets(content: Any, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(content, str):
        if len(content) >= LEAST:
            yield name, content
    elif isinstance(content, dict):
        for key, item in content.items():
            yield from _secrets(item, f"{name}.{key}" if name else str(key) or "_")
    elif isinstance(content, list):
        for place, item in enumerate(content):
            yield from _secrets(item, f"{name}.{place}")


def _of_text(secret: str) -> Iterator[tuple[str, str]]:
    """Yield (form, text); nearly all secrets are alike in most forms, and the first name is kept."""
    yield "", secret
    for form, encoded in (("url", quote(secret, "")), ("path", quote(secret)), ("form", quote_plus(secret))):
        yield form, encoded
        yield f"{form}-lower", re.sub("%[0-9A-F]{2}", lambda match: match.group().lower(), encoded)
    yield "json", json.dumps(secret)[1:-1]
    yield "json-text", json.dumps(secret, ensure_ascii=False)[1:-1]
    yield "html", html.escape(secret)
    content = secret.encode(errors="replace")
    for alphabet, encode in (("base64", base64.b64encode), ("base64url", base64.urlsafe_b64encode)):
        yield alphabet, encode(content).decode()
        for before in range(3):
            # What stands before it, and how long that is, decides which characters a secret turns into.
            encoded = encode(bytes(before) + content).decode()
            core = encoded[_STARTS[before] : (before + len(content)) * 8 // 6]
            yield f"{alphabet}-{before}", core if len(core) >= _CORE else ""


def _basic(credentials: Credentials) -> Iterator[SecretForm]:
    username, password = credentials.get("username"), credentials.get("password")
    if isinstance(username, str) and isinstance(password, str) and len(password) >= LEAST:
        pair = base64.b64encode(f"{username}:{password}".encode(errors="replace")).decode()
        yield SecretForm("password", "basic", pair)
