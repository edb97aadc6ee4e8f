"""JSON with ``{{variables}}`` and comments, as the bodies of a collection have it."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from engine.api.importing.examples import sounds_secret
from engine.api.importing.imported import Unimportable
from engine.api.importing.postman_variables import REFERENCE, Piece, Variables

__all__ = ("JsonTemplate", "Known")

_TOKEN = re.compile(r'"(?:[^"\\]|\\.?)*(?:"|\Z)|//[^\n]*|/\*.*?(?:\*/|\Z)|\{\{[^{}]{1,256}\}\}', re.DOTALL)
_MARK = re.compile("\ue000[0-9]+\ue001")
_DROPPED = object()
_DEEPEST = 30
_PATH = 200
_LONGEST = 262_144


class Known(msgspec.Struct, frozen=True):
    """What is known of a part of an example.

    :ivar value: with null or an empty text where a variable has no value, without what is secret; null if all of it is
    :ivar is_whole: no variable in it is without a value
    :ivar dropped: the names of secret parts, with full stops between those of several levels
    """

    value: Any
    is_whole: bool
    dropped: tuple[str, ...] = ()


class JsonTemplate:
    """An example in JSON whose variables may have no value.

    :ivar content: the JSON; where a variable has no value, or a secret one, there is a mark
    """

    def __init__(self, text: str, variables: Variables) -> None:
        """Read it.

        :raises Unimportable: if it is no JSON once its variables are filled, or is too large
        """
        if len(text) > _LONGEST:
            raise Unimportable(f"its body is an example of more than {_LONGEST >> 10} KiB")
        self._variables = variables
        self._marks: dict[str, Piece] = {}
        self._bare_marks: set[str] = set()
        self._size = 0
        written = _TOKEN.sub(self._token, text)
        if self._size > _LONGEST:
            raise Unimportable(f"its body's variables stand for more than {_LONGEST >> 10} KiB")
        try:
            self.content: Any = msgspec.json.decode(written.encode("utf-8", "replace"))
        except (msgspec.DecodeError, RecursionError):
            raise Unimportable("its body is not valid JSON, though it is sent as such") from None

    def __repr__(self) -> str:
        return f"<JsonTemplate with {len(self._marks)} marks>"

    def known(self, name: str, value: Any) -> Known:
        """Return what is known of a part of the content that is called so."""
        missing: list[bool] = []
        dropped: list[str] = []
        kept = self._kept(name, name, value, missing, dropped, 0)
        return Known(None if kept is _DROPPED else kept, not missing, tuple(dropped))

    def _kept(self, path: str, name: str, value: Any, missing: list[bool], dropped: list[str], depth: int) -> Any:
        if depth > _DEEPEST:
            raise Unimportable(f"its body is nested more than {_DEEPEST} levels deep")
        if isinstance(value, dict):
            inner = {
                key: self._kept(f"{path}.{key}"[:_PATH], key, item, missing, dropped, depth + 1)
                for key, item in value.items()
            }
            return {key: item for key, item in inner.items() if item is not _DROPPED}
        if isinstance(value, list):
            listed = [self._kept(path, name, item, missing, dropped, depth + 1) for item in value]
            return [item for item in listed if item is not _DROPPED]
        pieces = self._pieces(value)
        if any(each.is_secret for each in pieces) or (sounds_secret(name) and value and not isinstance(value, bool)):
            dropped.append(path)
            return _DROPPED
        if pieces:
            missing.append(True)
            # Outside of quotes any kind of value may be meant, within them a text.
            return None if value in self._bare_marks else ""
        return value

    def _pieces(self, value: Any) -> list[Piece]:
        if not self._marks or not isinstance(value, str):
            return []
        return [self._marks[mark] for mark in _MARK.findall(value) if mark in self._marks]

    def _token(self, found: re.Match[str]) -> str:
        token = found[0]
        if token.startswith(("//", "/*")):
            return " "
        if token.startswith("{{"):
            return self._bare(token)
        return REFERENCE.sub(self._within, token) if "{{" in token else token

    def _within(self, found: re.Match[str]) -> str:
        return "".join(
            self._mark(piece) if piece.name else self._counted(_encoded(piece.text or "")[1:-1])
            for piece in self._variables.expanded(found[0]).pieces
        )

    def _bare(self, token: str) -> str:
        expanded = self._variables.expanded(token)
        plain = expanded.plain
        if plain is None:
            mark = "".join(self._mark(each) for each in expanded.pieces if each.name)
            self._bare_marks.add(mark)
            return f'"{mark}"'
        try:
            msgspec.json.decode(plain.encode("utf-8", "replace"))
        except (msgspec.DecodeError, RecursionError):
            return self._counted(_encoded(plain))
        return self._counted(plain)

    def _counted(self, text: str) -> str:
        self._size += len(text)
        return text

    def _mark(self, piece: Piece) -> str:
        mark = f"\ue000{len(self._marks)}\ue001"
        self._marks[mark] = piece
        return mark


def _encoded(text: str) -> str:
    return msgspec.json.encode(text).decode()
