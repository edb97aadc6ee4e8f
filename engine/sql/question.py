"""What is asked about a database's tables."""

from __future__ import annotations

import msgspec

__all__ = ("Question",)


class Question(msgspec.Struct, frozen=True):
    """One page of tables.

    :ivar tables: a table's name, with ``*`` and ``?`` for what may stand there; empty: all
    :ivar after: the name after which to go on
    :ivar limit: tables, at most
    """

    schema: str
    tables: str
    after: str
    limit: int

    @property
    def pattern(self) -> str:
        """The pattern for LIKE; what is none of ours in it is meant as it is."""
        if not self.tables:
            return "%"
        escaped = self.tables.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        return escaped.replace("*", "%").replace("?", "_")
