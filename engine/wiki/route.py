"""From one path to another: which pages and links that moves, as conditions and as functions."""

from __future__ import annotations

from typing import Any

import msgspec
from sqlalchemy import Text, and_, func, literal, or_
from sqlalchemy.sql import ColumnElement

from engine.wiki.access import beginning
from engine.wiki.paths import WikiPath
from events.schema import Key

__all__ = ("Route",)


class Route(msgspec.Struct, frozen=True):
    """From one path to another: a page's, or a directory's with all that is in it."""

    old: WikiPath
    new: WikiPath
    is_directory: bool

    def has(self, column: Any, start: str = "") -> ColumnElement[bool]:
        """Return the condition that a path is moved."""
        if self.is_directory:
            return beginning(column, start + self.old.below)
        condition: ColumnElement[bool] = column == start + self.old.path
        return condition

    def leads(self, column: Any) -> ColumnElement[bool]:
        """Return the condition that a link leads to what is moved."""
        if not self.is_directory:
            return self.has(column)
        # A range of its own, for an index; what it has besides, like /docs-old, does not count.
        return and_(beginning(column, self.old.path), or_(column == self.old.path, self.has(column)))

    def to(self, column: Any, start: str = "") -> ColumnElement[str]:
        """Return where a path is moved to."""
        if not self.is_directory:
            return literal(self.new.path, Key())
        rest = func.substr(column, len(start + self.old.below) + 1, type_=Text())
        return literal(self.new.below, Text()) + rest

    @property
    def back(self) -> Route:
        """The same the other way round."""
        return Route(self.new, self.old, self.is_directory)

    def of(self, path: str) -> str | None:
        """Return where a path is moved to; None: it is not."""
        if path == self.old.path:
            return self.new.path
        if self.is_directory and path.startswith(self.old.below):
            return self.new.below + path.removeprefix(self.old.below)
        return None
