"""Variables of a collection: ``{{name}}`` in any text, with the values of collection, folders and environment."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from engine.api.importing.examples import is_placeholder, sounds_secret
from engine.api.importing.imported import Unimportable
from engine.api.importing.postman_entries import Entry
from engine.refusals import quoted

__all__ = ("REFERENCE", "Expanded", "Piece", "Variables")

REFERENCE = re.compile(r"\{\{([^{}]{1,256})\}\}")
"""A variable where it is used."""

_DEEPEST = 20
_LONGEST = 65_536
_MOST_PIECES = 1000
_BUDGET = 1 << 25


class Piece(msgspec.Struct, frozen=True):
    """A part of a text: literal, a variable without a value (``text`` None), or a secret one; ``repr`` shows no text.

    :ivar name: of the variable; "": it is literal
    """

    text: str | None
    name: str = ""
    is_secret: bool = False

    def __repr__(self) -> str:
        return f"<Piece {self.name or 'of text'}>"


class Expanded(msgspec.Struct, frozen=True):
    """A text with what its variables stand for."""

    pieces: tuple[Piece, ...]

    def __repr__(self) -> str:
        return f"<Expanded of {len(self.pieces)}>"

    @property
    def plain(self) -> str | None:
        """The text; None: part of it is not known, or secret."""
        return "".join(each.text or "" for each in self.pieces) if all(not each.name for each in self.pieces) else None

    @property
    def is_secret(self) -> bool:
        """Whether part of it is secret."""
        return any(each.is_secret for each in self.pieces)

    @property
    def revealed(self) -> str | None:
        """The text, with secrets; None: part of it is not known."""
        texts = [each.text for each in self.pieces]
        known = [text for text in texts if text is not None]
        return "".join(known) if len(known) == len(texts) else None

    @property
    def unknown(self) -> list[str]:
        """The names of the variables that have no value."""
        return [each.name for each in self.pieces if each.name and not each.is_secret]


class _Shared(msgspec.Struct):
    characters: int = 0
    secrets: set[str] = msgspec.field(default_factory=set)


class Variables:
    """The values that are known at one place: the environment's go first, then the innermost folder's.

    Secret are those whose type says so, and those whose names sound so.
    """

    def __init__(self, own: Iterable[Entry], environment: Iterable[Entry] = (), outer: Variables | None = None) -> None:
        """Take the values of one scope; ``outer`` has those of the scopes around it, and their environment."""
        self._own = {each.name: each for each in own if not each.disabled}
        self._environment = {each.name: each for each in environment if not each.disabled}
        self._outer = outer
        self._known: dict[str, tuple[Piece, ...]] = {}
        self._shared: _Shared = _Shared() if outer is None else outer._shared

    @property
    def secrets(self) -> frozenset[str]:
        """The secret values that texts of the whole collection have referred to so far."""
        return frozenset(self._shared.secrets)

    def within(self, own: list[Entry]) -> Variables:
        """Return the variables of a scope in this one."""
        return Variables(own, self._environment.values(), self) if own else self

    def expanded(self, text: str) -> Expanded:
        """Return what a text amounts to.

        :raises Unimportable: if a variable in it refers to itself, or stands for far too much
        """
        pieces = self._pieces(text, ())
        self._shared.characters += sum(len(each.text or "") for each in pieces)
        if self._shared.characters > _BUDGET:
            raise Unimportable("the collection's variables stand for far more than it says")
        return Expanded(pieces)

    def __repr__(self) -> str:
        return f"<Variables {', '.join(self._own) or 'of none'}>"

    def _found(self, name: str) -> Entry | None:
        if name in self._environment:
            return self._environment[name]
        scope: Variables | None = self
        while scope is not None:
            if name in scope._own:
                return scope._own[name]
            scope = scope._outer
        return None

    def _pieces(self, text: str, within: tuple[str, ...]) -> tuple[Piece, ...]:
        pieces: list[Piece] = []
        place = 0
        for found in REFERENCE.finditer(text):
            pieces += [Piece(text[place : found.start()]), *self._of(found[1].strip(), within)]
            place = found.end()
            if len(pieces) > _MOST_PIECES * 3:
                pieces = list(_merged(pieces))
        merged = _merged([*pieces, Piece(text[place:])])
        if within and sum(len(each.text or "") for each in merged) > _LONGEST:
            raise Unimportable(f"its variable {quoted(within[-1])} stands for more than {_LONGEST >> 10} KiB")
        return merged

    def _of(self, name: str, within: tuple[str, ...]) -> tuple[Piece, ...]:
        if name in self._known:
            return self._known[name]
        if name in within:
            raise Unimportable(f"its variable {quoted(name)} refers to itself")
        if len(within) >= _DEEPEST:
            raise Unimportable(f"its variables refer to each other more than {_DEEPEST} deep")
        entry = self._found(name)
        if entry is None:
            pieces: tuple[Piece, ...] = (Piece(None, name),)
        else:
            pieces = self._pieces(entry.text, (*within, name))
            if entry.kind == "secret" or sounds_secret(name):
                secret = Expanded(pieces).revealed or None
                if secret and not is_placeholder(secret):
                    self._shared.secrets.add(secret)
                pieces = (Piece(secret, name, True),)
        self._known[name] = pieces
        return pieces


def _merged(pieces: list[Piece]) -> tuple[Piece, ...]:
    """Return pieces with literal ones that meet made one. :raises Unimportable: if they are too many"""
    merged: list[Piece] = []
    literal: list[str] = []
    for piece in pieces:
        if not piece.name:
            literal.append(piece.text or "")
            continue
        if any(literal):
            merged.append(Piece("".join(literal)))
        literal = []
        merged.append(piece)
    if any(literal):
        merged.append(Piece("".join(literal)))
    if len(merged) > _MOST_PIECES:
        raise Unimportable(f"it has more than {_MOST_PIECES} variables in one text")
    return tuple(merged)
