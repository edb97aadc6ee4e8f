"""What must not be read in a result: the connection string and its password, and in errors where the database is."""

from __future__ import annotations

from typing import Any

from engine.api.masking import Masker
from engine.sql.dsn import Dsn

__all__ = ("Secrecy",)


class Secrecy:
    """Knows one row's secrets; its ``repr`` shows none."""

    def __init__(self, token: str, dsn: Dsn) -> None:
        """Take the connection string, as it is and as it was read."""
        secrets = {"token": token, "password": dsn.password}
        # A password that is the user's name or a like word would take that word out of everything.
        guessed = {dsn.user, dsn.host, dsn.database}
        self._content = Masker({"token": token} if dsn.password in guessed else secrets)
        self._errors = Masker({**secrets, "host": dsn.host} if {".", ":"} & set(dsn.host) else secrets)

    def said(self, text: str) -> str:
        """Return an error's text without the secrets, and without the host."""
        return self._errors.text(text)

    def content(self, content: Any) -> Any:
        """Return JSON content without the secrets."""
        return self._content.value(content)
