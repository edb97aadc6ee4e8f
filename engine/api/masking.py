"""Secrets taken out of what comes back: as they are, and in the forms that requests and servers give them."""

from __future__ import annotations

import html
import json
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote, quote_plus

__all__ = ("Masker",)

_MASK: Final = "***"
_SHORTEST: Final = 4
"""Shorter secrets are no secrets, and hiding them would leave nothing readable."""

_SHORTEST_NAME: Final = 8
"""A user name is hidden from this length on, or where it stands without a password: then it is a key."""


class Masker:
    """Knows the secrets of one request. Its ``repr`` shows none."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        forms = sorted({form for form in _forms(secrets) if len(form) >= _SHORTEST}, key=len, reverse=True)
        self._found = re.compile("|".join(map(re.escape, forms))) if forms else None
        self._bytes = tuple(form.encode() for form in forms if len(form) >= _SHORTEST_NAME)

    def __repr__(self) -> str:
        return "<Masker>"

    def text(self, text: str) -> str:
        """Return a text without the secrets."""
        return text if self._found is None else self._found.sub(_MASK, text)

    def value(self, value: Any) -> Any:
        """Return JSON content without the secrets, in keys too; the same object where there are none to look for."""
        return value if self._found is None else self._without(value)

    def _without(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(key): self._without(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._without(item) for item in value]
        if isinstance(value, int) and not isinstance(value, bool) and self.text(str(value)) != str(value):
            return _MASK
        return value

    def occurs_in(self, content: bytes) -> bool:
        """Tell whether bytes that are not to be changed hold a secret of at least 8 characters."""
        return any(form in content for form in self._bytes)


def _forms(secrets: Mapping[str, str]) -> Iterator[str]:
    password = secrets.get("password")
    for name, secret in secrets.items():
        if name != "username" or len(secret) >= _SHORTEST_NAME or not password:
            yield from _forms_of(secret)
    if "username" in secrets and password is not None:
        yield from _packed(f"{secrets['username']}:{password}")


def _forms_of(secret: str) -> Iterable[str]:
    if len(secret) < _SHORTEST:
        return
    yield secret
    for encoded in (quote(secret, safe=""), quote(secret), quote_plus(secret), quote(secret, safe="*")):
        yield encoded
        yield re.sub("%[0-9A-F]{2}", lambda found: found[0].lower(), encoded)
    yield html.escape(secret)
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield from _packed(secret)


def _packed(text: str) -> Iterator[str]:
    for pack in (b64encode, urlsafe_b64encode):
        packed = pack(text.encode()).decode()
        yield packed
        yield packed.rstrip("=")
        yield quote(packed, safe="")
