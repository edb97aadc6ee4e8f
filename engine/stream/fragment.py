"""One call while its pieces arrive."""

from __future__ import annotations

from typing import Any

import msgspec

from engine.call import ToolCall

__all__ = ("Fragment",)


class Fragment:
    """What has arrived of one call.

    :ivar ended: its end was seen
    :ivar unclear: a piece came that may be another call's; the call must not run, whatever it says
    """

    def __init__(self, call_id: str | None = None, name: str | None = None) -> None:
        self.id = call_id
        self.name = name or ""
        self.extra: dict[str, Any] = {}
        self.ended = False
        self.unclear = False
        self._value: dict[str, Any] | None = None
        self._pieces: list[str] = []
        self._length = 0

    def add_name(self, text: str) -> None:
        """Take a piece of the name, or the whole name once more."""
        if not text or text == self.name:
            return
        if self.name and (self._length or self._value):
            self.unclear = True
        else:
            self.name += text

    def add_arguments(self, piece: Any) -> None:
        """Take a piece of the arguments' text, or all of them once more, as text or as an object."""
        if isinstance(piece, str):
            if piece and not (len(piece) == self._length and self._has_come(piece)):
                self._pieces.append(piece)
                self._length += len(piece)
        elif isinstance(piece, dict):
            self.unclear = self.unclear or bool(self._value and self._value != piece)
            self._value = piece

    def set_arguments(self, whole: Any) -> None:
        """Take the arguments as they are in the end; they replace the pieces."""
        self._value = whole if isinstance(whole, dict) else None
        self._pieces = [whole] if isinstance(whole, str) and whole else []
        self._length = sum(map(len, self._pieces))

    def call(self) -> ToolCall:
        """Return the call as far as it has come."""
        text = "".join(self._pieces)
        unclear = self.unclear or bool(text and self._value and _decoded(text) != self._value)
        arguments = text if text or self._value is None else self._value
        return ToolCall(
            id=self.id,
            name=self.name or None,
            arguments=arguments,
            extra=self.extra,
            cut_off=unclear or not self.ended,
        )

    def _has_come(self, text: str) -> bool:
        """Tell whether the same text has come before and is an object already, so that it cannot go on."""
        return "".join(self._pieces) == text and isinstance(_decoded(text), dict)


def _decoded(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return None
