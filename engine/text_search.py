"""Looking for a piece of text in what a tool row keeps for a user: literally, in any case, names before contents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from sqlalchemy import Column, func, select
from sqlalchemy.sql import ColumnElement

from engine.contract import ToolStore
from engine.text_index import TextIndex, keys_below

__all__ = ("Hit", "TextSearch")

_NAMES: Final = 1000
_BATCH: Final = 32
_SHOWN: Final = 160


class Hit(msgspec.Struct, frozen=True):
    """A text that was found.

    :ivar key: its path or title
    :ivar line: the number of the first line that has the piece; None: only the key has it
    :ivar excerpt: that line, cut where it is long
    """

    key: str
    line: int | None = None
    excerpt: str = ""


class TextSearch:
    """Looks through the texts of one table that are this store's.

    :param here: the condition: this tenant's and row's
    """

    def __init__(
        self,
        store: ToolStore,
        index: TextIndex,
        key: Column[str],
        content: Column[str],
        here: Sequence[ColumnElement[bool]],
    ) -> None:
        self._store = store
        self._index = index
        self._key = key
        self._content = content
        self._here = here

    async def find(self, piece: str, limit: int, below: str = "") -> list[Hit]:
        """Return up to ``limit`` texts: named so, then with the piece elsewhere in their key, then in their content.

        :param below: only those whose keys begin so
        :raises LogUnavailable: if the database cannot be read
        """
        folded = piece.casefold()
        keys = await self._keys(piece, folded, below)
        hits = [Hit(key) for key in keys[:limit]]
        known, after = set(keys), below
        while len(hits) < limit:
            candidates = await self._index.candidates(piece, after, _BATCH, below)
            for key, content in await self._contents([key for key in candidates if key not in known]):
                if folded in content.casefold():
                    hits.append(_hit(key, content, folded))
            if len(candidates) < _BATCH:
                break
            after = candidates[-1]
        return hits[:limit]

    async def _keys(self, piece: str, folded: str, below: str) -> list[str]:
        pattern = "%" + "".join(map(_likened, piece)) + "%"
        rows = await self._store.read(
            select(self._key)
            .where(*self._here, *keys_below(self._key, below), func.lower(self._key).like(pattern.lower(), escape="\\"))
            .order_by(self._key)
            .limit(_NAMES)
        )
        found = [row[0] for row in rows if folded in row[0].casefold()]
        return sorted(found, key=lambda key: (_rank(key.casefold(), folded), key))

    async def _contents(self, keys: Sequence[str]) -> Sequence[tuple[str, str]]:
        if not keys:
            return ()
        return await self._store.read(
            select(self._key, self._content).where(*self._here, self._key.in_(keys)).order_by(self._key)
        )


def _likened(character: str) -> str:
    """Return a character of a LIKE pattern. Databases know the case of ASCII alone, so other cased ones stay open."""
    if character in "%_\\":
        return "\\" + character
    return character if character.isascii() or character.lower() == character.upper() else "_"


def _rank(key: str, folded: str) -> int:
    name = key.rpartition("/")[2]
    return 0 if name == folded else 1 if folded in name else 2


def _hit(key: str, content: str, folded: str) -> Hit:
    number = content.casefold().partition(folded)[0].count("\n")
    line = content.split("\n")[number]
    at = max(line.casefold().find(folded.partition("\n")[0]) - _SHOWN // 4, 0)
    cut = line[at : at + _SHOWN]
    return Hit(key, number + 1, f"{'...' if at else ''}{cut}{'...' if at + _SHOWN < len(line) else ''}")
