"""Errors: one root, three families, each text written for the reader."""

from __future__ import annotations

__all__ = (
    "Conflict",
    "JournalError",
    "LogUnavailable",
    "NotFound",
    "Refused",
    "SchemaMismatch",
    "TransitionRejected",
    "Unavailable",
    "VersionConflict",
)


class JournalError(Exception):
    """Root of every error that calljournal raises on purpose."""


class Refused(JournalError):
    """The caller asked for something that is not allowed; the text is fit for a model to read."""


class NotFound(Refused):
    """There is no such thing, or the tenant may not see it: the two are never told apart."""


class Conflict(JournalError):
    """Somebody else was faster: read again, then decide anew."""


class VersionConflict(Conflict):
    """The stream is not at the expected version.

    :ivar key: the stream
    :ivar expected: the version the caller expected
    :ivar actual: the version found, or None where the stream does not exist (or is not the tenant's)
    """

    def __init__(self, key: str, expected: int, actual: int | None) -> None:
        found = "it does not exist" if actual is None else f"it is at version {actual}"
        super().__init__(f"stream {key!r}: version {expected} was expected, but {found}; read it again")
        self.key = key
        self.expected = expected
        self.actual = actual


class TransitionRejected(Conflict):
    """The lifecycle does not allow this event in the attempt's present state.

    :ivar key: the stream
    :ivar event: the event's kind
    :ivar state: the attempt's state as ``status/gate``
    """

    def __init__(self, key: str, event: str, state: str) -> None:
        super().__init__(f"call {key!r} is {state}: {event} is not possible now")
        self.key = key
        self.event = event
        self.state = state


class Unavailable(JournalError):
    """Infrastructure failed; the real error is in ``__cause__``."""


class LogUnavailable(Unavailable):
    """The log cannot be reached or written; nothing was lost that had been acknowledged."""


class SchemaMismatch(Unavailable):
    """The database's schema does not fit this release; the text says which command helps."""
