"""A row's secrets taken out of what comes back, in every form that is known (CASES OTEL-03)."""

from __future__ import annotations

from typing import Any

from engine.api.signing import MASK
from engine.credentials import Credentials
from engine.secret_forms import SecretForm, SecretForms
from engine.texts_within import with_texts

__all__ = ("Masker",)


class Masker:
    """Knows the secrets of one row; its ``repr`` shows none."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self._forms = SecretForms({name: _texts(item) for name, item in credentials.items()})

    def __repr__(self) -> str:
        return f"<Masker of {self._forms!r}>"

    def knowing(self, more: Credentials) -> Masker:
        """Return one that knows more secrets."""
        return Masker({**self._credentials, **more}) if more else self

    def text(self, text: str) -> str:
        """Return a text without the secrets."""
        return self._forms.replaced(text, _mask)

    def value(self, value: Any) -> Any:
        """Return JSON content without the secrets, in keys too."""
        return with_texts(value, self.text, self.text)

    def occurs_in(self, content: bytes) -> bool:
        """Tell whether bytes that are not to be changed hold a secret."""
        return any(self._forms.stand_in(content.decode(charset, "replace")) for charset in ("latin-1", "utf-8"))


def _mask(_: SecretForm) -> str:
    return MASK


def _texts(secret: Any) -> Any:
    """Return a credential with its numbers as text: that is how they are sent."""
    return str(secret) if isinstance(secret, int | float) and not isinstance(secret, bool) else secret
