"""Looking for a piece of text in what a tool row keeps for a user: literally, in any case, names before contents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from engine.contract import ToolStore
from engine.text_index import EVERYTHING, KeyRange, TextIndex
from engine.tool_sql import Sql

__all__ = ("Hit", "SearchedTexts", "TextSearch")

_KEYS: Final = 256
_BATCH: Final = 64
_SHOWN: Final = 160
_NAMED: Final = (
    "SELECT {key} FROM {table} WHERE {here} AND {key} >= :start AND {key} < :stop "
    "AND {like} :pattern ESCAPE '\\' ORDER BY {key} LIMIT :limit"
)
_LIKE: Final = {"sqlite": "{key} LIKE", "postgresql": "lower({key}) LIKE"}
"""SQLite's takes both cases of ASCII as one; to fold each key first costs twice the time."""


class Hit(msgspec.Struct, frozen=True):
    """A text that was found.

    :ivar key: its path or title
    :ivar line: the number of the first line that has the piece; None: only the key has it
    :ivar excerpt: that line, cut where it is long
    """

    key: str
    line: int | None = None
    excerpt: str = ""


class SearchedTexts:
    """The statements that look at the texts of one table.

    :param key: the column of their paths or titles; what they say is in ``content``
    :ivar named: by dialect: the keys within ``:start`` and ``:stop`` that are LIKE a ``:pattern`` in lower case, at
        most ``:limit``, in order
    :ivar there: those of ``:keys`` that it has
    :ivar contents: (key, content) of ``:keys``
    """

    def __init__(self, table: str, key: str) -> None:
        self.named = {dialect: Sql(_NAMED, like=like, table=table, key=key) for dialect, like in _LIKE.items()}
        self.there = Sql("SELECT {key} FROM {table} WHERE {here} AND {key} IN :keys", table=table, key=key)
        self.contents = Sql("SELECT {key}, content FROM {table} WHERE {here} AND {key} IN :keys", table=table, key=key)

    def __repr__(self) -> str:
        return f"<SearchedTexts {self.contents!r}>"


class TextSearch:
    """Looks through the texts of one table."""

    def __init__(self, store: ToolStore, index: TextIndex, texts: SearchedTexts) -> None:
        self._store = store
        self._index = index
        self._texts = texts

    async def find(self, piece: str, limit: int, within: KeyRange = EVERYTHING) -> list[Hit]:
        """Return up to ``limit`` texts: named so, then with the piece elsewhere in their key, then in their content.

        :raises LogUnavailable: if the database cannot be read
        """
        folded = piece.casefold()
        candidates = await self._index.candidates(piece, "", _KEYS, within)
        whole = len(candidates) < _KEYS
        if whole:
            named = await self._there([key for key in candidates if folded in key.casefold()])
        else:
            named = await self._named_so(piece, folded, within)
        named.sort(key=lambda key: (_rank(key.casefold(), folded), key))
        hits = [Hit(key) for key in named[:limit]]
        others = sorted(set(candidates).difference(named))
        while len(hits) < limit and others:
            hits += await self._holding(folded, others[:_BATCH])
            others = others[_BATCH:]
            if not others and not whole:
                candidates = await self._index.candidates(piece, candidates[-1], _KEYS, within)
                whole, others = len(candidates) < _KEYS, sorted(set(candidates).difference(named))
        return hits[:limit]

    async def _there(self, keys: Sequence[str]) -> list[str]:
        """Return those of some keys that have a text: the index may still know what was deleted and can come back."""
        if not keys:
            return []
        return [row[0] for row in await self._store.read(self._texts.there.bind(self._store, keys=keys))]

    async def _holding(self, folded: str, keys: Sequence[str]) -> list[Hit]:
        rows = await self._store.read(self._texts.contents.bind(self._store, keys=keys))
        return [
            _hit(key, content, folded) if folded in content.casefold() else Hit(key)
            for key, content in sorted(rows)
            if folded in content.casefold() or folded in key.casefold()
        ]

    async def _named_so(self, piece: str, folded: str, within: KeyRange) -> list[str]:
        pattern = f"%{''.join(map(_likened, piece))}%".lower()
        where = {"start": within.start, "stop": within.stop, "pattern": pattern, "limit": _KEYS}
        named = self._texts.named[self._store.dialect]
        rows: Sequence[tuple[str]] = await self._store.read(named.bind(self._store, **where))
        return [row[0] for row in rows if folded in row[0].casefold()]


def _likened(character: str) -> str:
    """Return a character of a LIKE pattern.

    Databases know the case of ASCII alone, so what else has one stays open, in length too: "ß" is "SS" in the other.
    """
    if character in "%_\\":
        return "\\" + character
    return character if character.isascii() or character.lower() == character.upper() else "%"


def _rank(key: str, folded: str) -> int:
    name = key.rpartition("/")[2]
    return 0 if name == folded else 1 if folded in name else 2


def _hit(key: str, content: str, folded: str) -> Hit:
    number = content.casefold().partition(folded)[0].count("\n")
    line = content.split("\n")[number]
    at = max(line.casefold().find(folded.partition("\n")[0]) - _SHOWN // 4, 0)
    cut = line[at : at + _SHOWN]
    return Hit(key, number + 1, f"{'...' if at else ''}{cut}{'...' if at + _SHOWN < len(line) else ''}")
