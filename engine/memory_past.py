"""What the files of a memory said before: one row per version, one without content where a file was deleted."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from engine import memory_sql as sql
from engine.action_entry import MOST
from engine.memory_limits import PAST, VERSIONS
from engine.memory_store import MemoryStore, OldVersion, Standing
from engine.text_index import KeyRange

__all__ = ("Former", "MemoryPast", "PastVersion", "Room")


class PastVersion(msgspec.Struct, frozen=True):
    """What the history says of a version; ``deleted``: the file went, and said nothing any more."""

    path: str
    version: int
    size: int
    deleted: bool
    changed_at: datetime
    conversation_id: str | None
    by_call: str | None


class Former(msgspec.Struct, frozen=True):
    """What a file said at a version."""

    version: int
    content: str


class Room(msgspec.Struct, frozen=True):
    """How room is made in the history: statements of a change, and the bytes that they free."""

    statements: tuple[Any, ...] = ()
    freed: int = 0


class MemoryPast:
    """The history of one user's memory; reading it raises LogUnavailable if the database cannot be read."""

    def __init__(self, files: MemoryStore) -> None:
        self._files = files

    async def versions(self, path: str) -> list[PastVersion]:
        """Return what is kept of one path, the newest first."""
        return [_version(row) for row in await self._files.rows(sql.VERSIONS_OF, path=path, limit=VERSIONS * 2)]

    async def gone(self, directory: str, limit: int) -> list[PastVersion]:
        """Return which files are not below a directory any more, the last to go first."""
        keys = KeyRange.below(directory)
        return [
            _version(row) for row in await self._files.rows(sql.GONE, start=keys.start, stop=keys.stop, limit=limit)
        ]

    async def former(self, path: str, version: int | None) -> Former | None:
        """Return what a path said at a version; None: when it last said something."""
        bounds = {"version": version or 0, "upto": version or MOST}
        rows = await self._files.rows(sql.FORMER, path=path, **bounds)
        return Former(*rows[0]) if rows else None

    async def room(self, standing: Standing, version: int, added: int, token: str) -> Room:
        """Return how room is made for a version: what is too old goes, and what is too much.

        :param version: the version that is about to be kept
        :param added: its bytes
        """
        dropped = {*standing.gone, *(each for each in standing.past if each.version <= version - VERSIONS)}
        excess = standing.sums.past + added - _bytes(dropped) - PAST
        if excess > 0:
            for row in await self._files.rows(sql.OLDEST):
                dropped.add(OldVersion(*row))
                if standing.sums.past + added - _bytes(dropped) <= PAST:
                    break
        dropping = [
            self._files.bound(sql.DROPPED, path=each.path, version=each.version, token=token) for each in dropped
        ]
        unfound = [
            self._files.bound(sql.UNFOUND, path=path, space=self._files.index.space, token=token)
            for path in {each.path for each in standing.gone}
        ]
        return Room((*dropping, *unfound), _bytes(dropped))


def _bytes(versions: set[OldVersion]) -> int:
    return sum(each.size for each in versions)


def _version(row: Any) -> PastVersion:
    path, version, size, deleted, *origin = row
    return PastVersion(path, version, size, bool(deleted), *origin)
