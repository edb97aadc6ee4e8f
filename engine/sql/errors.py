"""What can go wrong with a statement that a tool sends to a database; each text is fit for a model."""

from __future__ import annotations

from events.errors import Refused

__all__ = ("SqlError",)


class SqlError(Refused):
    """The statement was not run, or failed. No text holds host, user or password of the database."""
