"""Finding a text by any piece of it, in any case, without reading all texts, on either database.

Each part of a text has a signature: a bit for every run of three bytes that occurs in it, folded to one case. A text
can hold a piece only if some part has all the piece's bits; only those are read, and looked at. The bits of its key
stand with its first part. No run goes on over a slash, so that a key in another directory has the same bits but for
those of the directory's own name.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, reduce
from operator import or_
from typing import Any, Final

from engine.contract import ToolStore
from engine.tool_sql import Sql

__all__ = ("EVERYTHING", "KeyRange", "TextIndex", "parts_of", "signature", "sought")

_WORDS: Final = 12
_BITS: Final = 62
"""Bits of a signed integer that both databases' ``&`` leaves alone."""

_PART: Final = 512
_OVERLAP: Final = 32
_BYTE: Final = 256
_SLASH: Final = ord("/")
_NAMES: Final = tuple(f"bits{number}" for number in range(_WORDS))

_ADDED: Final = Sql(
    "INSERT INTO text_index (tenant, space, key, part, {bits}) SELECT :tenant, :space, :key, :part, {values} "
    "WHERE {holds}",
    bits=", ".join(_NAMES),
    values=", ".join(f":{name}" for name in _NAMES),
)
_FORGOTTEN: Final = Sql("DELETE FROM text_index WHERE tenant = :tenant AND space = :space AND key = :key AND {holds}")
_CANDIDATES: Final = Sql(
    "SELECT DISTINCT key FROM text_index WHERE tenant = :tenant AND space = :space AND key >= :start AND key < :stop "
    "AND key > :after AND {has_all} ORDER BY key LIMIT :limit",
    has_all=" AND ".join(f"({name} & :{name}) = :{name}" for name in _NAMES),
)


@lru_cache(maxsize=1 << 16)
def _bit(run: tuple[int, int, int]) -> int:
    first, second, third = run
    # Knuth's multiplicative hash: neighbouring runs go to bits far apart.
    mixed = ((first * _BYTE + second) * _BYTE + third) * 2654435761 % (1 << 32)
    return 1 << (mixed >> 8) % (_WORDS * _BITS)


def signature(*folded: bytes) -> dict[str, int]:
    """Return the bits of pieces of text, folded and in UTF-8, by the columns they stand in."""
    runs = {run for piece in folded for run in zip(piece, piece[1:], piece[2:], strict=False)}
    whole = reduce(or_, (_bit(run) for run in runs if _SLASH not in run[1:]), 0)
    return {name: whole >> place * _BITS & (1 << _BITS) - 1 for place, name in enumerate(_NAMES)}


def parts_of(content: str) -> list[bytes]:
    """Return a text's parts, folded and in UTF-8: there is at least one, and each goes on into the next."""
    folded = content.casefold().encode()
    return [folded[at : at + _PART + _OVERLAP] for at in range(0, max(len(folded) - _OVERLAP, 1), _PART)]


def sought(piece: str) -> bytes:
    """Return what of a piece, folded and in UTF-8, lies within one part wherever the piece lies in a text."""
    return piece.casefold().encode()[: _OVERLAP + 1]


class KeyRange:
    """The keys from ``start`` up to, and without, ``stop``, compared byte by byte."""

    def __init__(self, start: str, stop: str) -> None:
        self.start = start
        self.stop = stop

    def __repr__(self) -> str:
        return f"<KeyRange {self.start!r} .. {self.stop!r}>"

    @classmethod
    def below(cls, directory: str) -> KeyRange:
        """Return the range of what begins with a prefix that ends in an ASCII character, as ``/a/`` does."""
        return cls(directory, directory[:-1] + chr(ord(directory[-1]) + 1))


EVERYTHING: Final = KeyRange("", "\U0010ffff")
"""No key begins with the last character that there can be."""


class TextIndex:
    """The signatures of one tool row's texts, each under its key.

    :param kind: the tool's; with the row's id it tells the texts of one row from all others
    """

    def __init__(self, store: ToolStore, kind: str) -> None:
        self._store = store
        self.space = f"{kind}:{store.tool_id}"

    def indexed(self, key: str, content: str, token: str) -> list[Any]:
        """Return the statements of a change that make a key, and ``content``, what is found under it."""
        own, *others = parts_of(content)
        first = self._added(key, 0, token, key.casefold().encode(), own)
        rest = (self._added(key, place, token, part) for place, part in enumerate(others, 1))
        return [self.forgotten(key, token), first, *rest]

    def forgotten(self, key: str, token: str) -> Any:
        """Return the statement of a change that forgets the text under a key."""
        return _FORGOTTEN.bind(self._store, space=self.space, key=key, token=token)

    async def candidates(self, piece: str, after: str, limit: int, within: KeyRange = EVERYTHING) -> Sequence[str]:
        """Return the keys, in order, that may hold a piece, or whose texts may; who looks must fold all of them alike.

        :param after: only keys after this one
        :raises LogUnavailable: if the database cannot be read
        """
        wanted = signature(sought(piece))
        where = {"start": within.start, "stop": within.stop, "after": after, "limit": limit}
        return [
            row[0] for row in await self._store.read(_CANDIDATES.bind(self._store, space=self.space, **where, **wanted))
        ]

    def _added(self, key: str, part: int, token: str, *folded: bytes) -> Any:
        return _ADDED.bind(self._store, space=self.space, key=key, part=part, token=token, **signature(*folded))
