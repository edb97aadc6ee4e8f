"""What must not be shown of a database URL."""

from __future__ import annotations

from urllib.parse import parse_qsl, unquote

__all__ = ("secrets_of",)

_NAMES = frozenset({"password", "passfile", "sslpassword"})
_SHORTEST = 4
"""Taking shorter ones out would make any text unreadable."""


def secrets_of(url: str) -> tuple[str, ...]:
    """Return the passwords in a URL, as written and as meant, longest first; whatever its form."""
    rest = url.partition("://")[2] or url
    before, at, _ = rest.rpartition("@")
    password = before.partition(":")[2] if at else ""
    queried = [value for name, value in parse_qsl(url.partition("?")[2]) if name.lower() in _NAMES]
    found = {form for secret in (password, *queried) for form in (secret, unquote(secret)) if len(form) >= _SHORTEST}
    return tuple(sorted(found, key=len, reverse=True))
