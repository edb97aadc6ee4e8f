"""What a tool is given, where nobody has checked it: its configuration, and a call's arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.api.masking import Masker
from engine.refusals import quoted
from events.errors import Refused

__all__ = ("Given", "masker_of")


class Given:
    """Arguments, or a configuration, read by name; whatever is wrong with one is said in a line."""

    def __init__(self, values: Mapping[str, Any], what: str = "argument") -> None:
        """Take the values.

        :param what: what texts call one
        """
        self._values = values
        self._what = what

    def has(self, name: str) -> bool:
        """Tell whether there is a value; null and empty text are none."""
        return self._values.get(name) not in (None, "")

    def text(self, name: str, default: str | None = None, longest: int | None = None) -> str:
        """Return a text; None as the default: it must be given. :raises Refused: if it is none, or too long"""
        value = self._values.get(name) if self.has(name) else default
        if not isinstance(value, str) or (default is None and not value.strip()):
            raise self._wrong(name, "must be text")
        if longest is not None and len(value) > longest:
            raise self._wrong(name, f"has {len(value):,} characters; at most {longest:,} are taken")
        return _sendable(value)

    def whole(self, name: str, default: int, least: int, most: int) -> int:
        """Return a whole number, which may have come as text. :raises Refused: if it is none, or out of bounds"""
        value = self._values.get(name) if self.has(name) else default
        if isinstance(value, str) and value.isascii() and value.isdigit():
            value = int(value[:18])
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise self._wrong(name, f"must be a whole number from {least} to {most}")
        return value

    def choice(self, name: str, default: str, *choices: str) -> str:
        """Return one of the choices. :raises Refused: if it is none of them"""
        value = self._values.get(name) if self.has(name) else default
        if value not in (default, *choices):
            raise self._wrong(name, f"must be one of {', '.join(choice for choice in choices if choice)}")
        return str(value)

    def texts(self, name: str, most: int) -> tuple[str, ...]:
        """Return a list of texts. :raises Refused: if it is none, or has more"""
        value = self._values.get(name)
        items = [] if value in (None, "") else value
        if not isinstance(items, list) or len(items) > most or not all(isinstance(item, str) for item in items):
            raise self._wrong(name, f"must be a list of at most {most} texts")
        return tuple(map(_sendable, items))

    def flag(self, name: str) -> bool:
        """Return whether a flag is set. :raises Refused: if it is neither true nor false"""
        value = self._values.get(name, False)
        if not isinstance(value, bool):
            raise self._wrong(name, "must be true or false")
        return value

    def _wrong(self, name: str, reason: str) -> Refused:
        return Refused(f"The {self._what} {quoted(name)} {reason}.")


def _sendable(text: str) -> str:
    """Return a text without halves of characters, which no encoding has."""
    return text.encode("utf-8", "replace").decode()


def masker_of(config: Mapping[str, Any], requirements: Mapping[str, Any]) -> Masker:
    """Return what takes a row's secrets out of texts: the values of those keys that its tool calls secret."""
    return Masker({key: config[key] for key, entry in requirements.items() if entry.get("secret") and config.get(key)})
