"""Finding a text by any piece of it, in any case, without reading all texts, on either database.

Each part of a text has a signature: a bit for every run of three bytes that occurs in it, folded to one case. A text
can hold a piece only if some part has all the piece's bits; only those are read, and looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, reduce
from operator import or_
from typing import Any, Final, TypeAlias

from sqlalchemy import BigInteger, Integer, and_, delete, func, insert, literal, select, true
from sqlalchemy.sql import ColumnElement

from engine.contract import ToolStore
from engine.tool_schema import text_index
from events.schema import Key

__all__ = ("TextIndex", "keys_below", "signature")

Condition: TypeAlias = ColumnElement[bool]

_WORDS: Final = 12
_BITS: Final = 62
"""Bits of a signed integer that both databases' ``&`` leaves alone."""

_PART: Final = 512
_OVERLAP: Final = 32
_BYTE: Final = 256
_NAMES: Final = tuple(f"bits{number}" for number in range(_WORDS))


@lru_cache(maxsize=1 << 16)
def _bit(run: tuple[int, int, int]) -> int:
    first, second, third = run
    # Knuth's multiplicative hash: neighbouring runs go to bits far apart.
    mixed = ((first * _BYTE + second) * _BYTE + third) * 2654435761 % (1 << 32)
    return 1 << (mixed >> 8) % (_WORDS * _BITS)


def signature(folded: bytes) -> tuple[int, ...]:
    """Return the bits of a piece of text, folded and in UTF-8, as the words of a row."""
    whole = reduce(or_, map(_bit, set(zip(folded, folded[1:], folded[2:], strict=False))), 0)
    return tuple(whole >> word * _BITS & (1 << _BITS) - 1 for word in range(_WORDS))


class TextIndex:
    """The signatures of one tool row's texts, each under its key.

    :param kind: the tool's; with the row's id it tells the texts of one row from all others
    """

    def __init__(self, store: ToolStore, kind: str) -> None:
        self._store = store
        self._space = f"{kind}:{store.tool_id}"

    def indexed(self, key: str, content: str, holds: Condition) -> list[Any]:
        """Return the statements that make ``content`` what is found under a key, if the condition holds."""
        folded = content.casefold().encode()
        parts = [folded[at : at + _PART + _OVERLAP] for at in range(0, max(len(folded) - _OVERLAP, 1), _PART)]
        return [self.forgotten(self.of(key), holds), *(self._row(key, n, part, holds) for n, part in enumerate(parts))]

    def forgotten(self, which: ColumnElement[bool], holds: Condition) -> Any:
        """Return the statement that forgets the texts of some keys, if the condition holds."""
        return delete(text_index).where(*self._here(), which, holds)

    def moved(
        self, old: str, new: str, is_there: Callable[[ColumnElement[str]], Condition], holds: Condition
    ) -> list[Any]:
        """Return the statements that make texts be found under keys that begin with ``new`` which began with ``old``.

        :param is_there: which of the new keys have a text
        """
        key, bits = text_index.c.key, [text_index.c[name] for name in _NAMES]
        renamed = literal(new, Key()) + func.substr(key, len(old) + 1)
        row = select(text_index.c.tenant, text_index.c.space, renamed, text_index.c.part, *bits).where(
            *self._here(), *keys_below(key, old), is_there(renamed), holds
        )
        names = ["tenant", "space", "key", "part", *_NAMES]
        stale = self.forgotten(and_(*keys_below(key, new), is_there(key)), holds)
        return [stale, insert(text_index).from_select(names, row, include_defaults=False)]

    def of(self, key: str) -> ColumnElement[bool]:
        """Return the condition: this key's."""
        return text_index.c.key == key

    async def candidates(self, piece: str, after: str, limit: int, below: str = "") -> Sequence[str]:
        """Return the keys, in order, of texts that may hold a piece; who looks must fold text and piece alike.

        :param after: only keys after this one
        :param below: only keys that begin so
        :raises LogUnavailable: if the database cannot be read
        """
        # A longer piece need not lie in one part.
        wanted = signature(piece.casefold().encode()[: _OVERLAP + 1])
        columns = [(text_index.c[name], word) for name, word in zip(_NAMES, wanted, strict=True) if word]
        has_all = and_(*(column.bitwise_and(word) == word for column, word in columns)) if columns else true()
        rows = await self._store.read(
            select(text_index.c.key)
            .where(*self._here(), *keys_below(text_index.c.key, below), text_index.c.key > after, has_all)
            .distinct()
            .order_by(text_index.c.key)
            .limit(limit)
        )
        return [row[0] for row in rows]

    def _here(self) -> tuple[ColumnElement[bool], ...]:
        return text_index.c.tenant == self._store.tenant, text_index.c.space == self._space

    def _row(self, key: str, part: int, folded: bytes, holds: Condition) -> Any:
        row = select(
            literal(self._store.tenant, Key()),
            literal(self._space, Key()),
            literal(key, Key()),
            literal(part, Integer()),
            *(literal(word, BigInteger()) for word in signature(folded)),
        ).where(holds)
        return insert(text_index).from_select(["tenant", "space", "key", "part", *_NAMES], row, include_defaults=False)


def keys_below(key: ColumnElement[str], prefix: str) -> list[ColumnElement[bool]]:
    """Return the conditions of a range of keys: those that begin with a prefix (which ends in an ASCII character)."""
    if not prefix:
        return []
    return [key >= prefix, key < prefix[:-1] + chr(ord(prefix[-1]) + 1)]
