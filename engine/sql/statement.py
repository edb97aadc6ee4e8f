"""What kind of statement a text is, by its first word. That it is one alone, the server sees to."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from engine.sql.errors import SqlError

__all__ = ("Statement",)

_LONGEST: Final = 100_000
_BLANK: Final = re.compile(r"[\s(;]+|--[^\n]*")
_WORD: Final = re.compile(r"[A-Za-z]+")
_COMMENT: Final = re.compile(r"/\*|\*/")
_QUERIES: Final = frozenset({"SELECT", "WITH", "VALUES", "TABLE", "SHOW", "EXPLAIN"})
_PLANNED: Final = frozenset({"SELECT", "WITH", "VALUES", "TABLE", "INSERT", "UPDATE", "DELETE", "MERGE"})
_TRANSACTIONAL: Final = frozenset(
    {
        *("BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE", "PREPARE"),
        *("EXECUTE", "DEALLOCATE", "DECLARE", "FETCH", "MOVE", "CLOSE"),
    }
)
_SESSION: Final = frozenset({"SET", "RESET", "DISCARD", "LISTEN", "UNLISTEN", "LOAD"})


class Statement(msgspec.Struct, frozen=True):
    """A statement and its first word, in capitals; parentheses and comments before it do not count."""

    text: str
    keyword: str

    @classmethod
    def of(cls, text: str) -> Statement:
        """Take a text. :raises SqlError: if it is none that can be sent, or there is nothing in it"""
        if len(text) > _LONGEST:
            raise SqlError(f"The statement has {len(text):,} characters; at most {_LONGEST:,} are taken.")
        if "\0" in text or any(0xD800 <= ord(each) < 0xE000 for each in text):
            raise SqlError("The statement holds characters that cannot be sent.")
        word = _WORD.match(text, _start(text))
        if word is None:
            raise SqlError("sql_query is empty." if _start(text) >= len(text) else "sql_query is no statement.")
        return cls(text, word.group().upper())

    @property
    def has_plan(self) -> bool:
        """Whether the server can say how it would run it."""
        return self.keyword in _PLANNED

    def require_query(self) -> None:
        """:raises SqlError: if it is none that only reads"""
        if self.keyword not in _QUERIES:
            raise SqlError(
                f"{self.keyword} is not run by this action, which only reads: SELECT, WITH, VALUES, TABLE, SHOW and"
                " EXPLAIN. To change data, use postgres_write_sql."
            )

    def require_planned(self) -> None:
        """:raises SqlError: if it is none that has a plan"""
        if self.keyword == "EXPLAIN":
            raise SqlError("Give the statement alone, without EXPLAIN.")
        if not self.has_plan:
            raise SqlError(f"{self.keyword} has no plan; SELECT, WITH, VALUES, TABLE, INSERT, UPDATE, DELETE have.")

    def require_change(self) -> None:
        """:raises SqlError: if it cannot be run in a transaction of its own"""
        if self.keyword in _TRANSACTIONAL:
            raise SqlError(f"{self.keyword} is not run: each call is one statement in one transaction of its own.")
        if self.keyword in _SESSION:
            raise SqlError(f"{self.keyword} is not run: no setting outlives the call.")
        if self.keyword == "COPY":
            raise SqlError("COPY is not run: it reads and writes files, or streams. Use INSERT or SELECT.")


def _start(text: str) -> int:
    """Return where a text's first word would begin."""
    at = 0
    while True:
        if (blank := _BLANK.match(text, at)) is not None:
            at = blank.end()
        elif text.startswith("/*", at):
            at = _past_comment(text, at)
        else:
            return at


def _past_comment(text: str, at: int) -> int:
    """Return where a comment ends, which may hold others."""
    depth = 0
    for mark in _COMMENT.finditer(text, at):
        depth += 1 if mark.group() == "/*" else -1
        if depth == 0:
            return mark.end()
    return len(text)
