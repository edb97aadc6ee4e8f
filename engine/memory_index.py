"""What a model is told of a user's memory when a conversation starts: the files that changed last."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec

from engine.contract import ToolStore
from engine.text_fence import fenced
from engine.tool_sql import Sql

__all__ = ("FILES", "LONGEST", "memory_index")

FILES: Final = 30
"""Files that an index names."""

LONGEST: Final = 2_000
"""Characters of an index, its marks and what stands around them included."""

_AROUND: Final = 400
"""Characters left for what is not a file's line."""

_NEWEST: Final = Sql(
    "SELECT path, size, updated_at, (SELECT entries FROM tool_ledgers WHERE {here}) AS files, "
    "(SELECT size FROM tool_ledgers WHERE {here}) AS space FROM memory_files "
    "WHERE {here} ORDER BY updated_at DESC, path LIMIT :limit",
    moments=("updated_at",),
)


class _File(msgspec.Struct, frozen=True):
    path: str
    size: int
    updated_at: datetime

    @property
    def line(self) -> str:
        # A path that is cut would name another file, or none.
        return f"- {self.path} ({self.size:,} bytes, {self.updated_at:%Y-%m-%d %H:%M} UTC)"


async def memory_index(store: ToolStore) -> str | None:
    """Return the index, in its fence; None: there is no file. It costs one read.

    :raises LogUnavailable: if the database cannot be read
    """
    rows = await store.read(_NEWEST.bind(store, limit=FILES))
    if not rows:
        return None
    files, size = rows[0][3:]
    lines = _fitting([_File(*row[:3]) for row in rows])
    about = f"Your memory has {files:,} file(s), {size:,} bytes; these changed last, the newest first."
    more = f"\n(and {files - len(lines):,} more: view / to list them)" if files > len(lines) else ""
    return fenced(about, "\n".join(lines), "(their paths are too long for this list)") + more


def _fitting(files: Sequence[_File]) -> list[str]:
    lines: list[str] = []
    room = LONGEST - _AROUND
    for file in files:
        room -= len(file.line) + 1
        if room < 0:
            break
        lines.append(file.line)
    return lines
