"""What counts as an outage of the journal: infrastructure that failed, never a bug of ours, nor somebody faster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from events.errors import LogUnavailable, Refused, Unavailable

__all__ = ("is_outage",)

_BUGS: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    NameError,
    NotImplementedError,
    RecursionError,
    SyntaxError,
    TypeError,
    ValueError,
)

_MISUSE: Final = frozenset({"DataError", "IntegrityError", "InterfaceError", "NotSupportedError", "ProgrammingError"})
"""What SQLite's module raises where it was asked for something that makes no sense."""


def is_outage(error: BaseException) -> bool:
    """Tell whether an error means that the journal is away: then what ends a call may be spooled.

    A bug that came to light while a batch was written reaches those beside it as LogUnavailable: its cause says so.
    """
    return isinstance(error, LogUnavailable) and not any(map(_is_bug, _causes(error)))


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause, met = error.__cause__, set[int]()
    # Raised from itself, an error is its own cause.
    while cause is not None and id(cause) not in met:
        yield cause
        met.add(id(cause))
        cause = cause.__cause__


def _is_bug(error: BaseException) -> bool:
    if isinstance(error, Unavailable | OSError):
        return False
    misused = type(error).__module__ == "sqlite3" and type(error).__name__ in _MISUSE
    return misused or isinstance(error, (Refused, *_BUGS))
