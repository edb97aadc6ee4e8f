"""What a command ends with when something is wrong: one line for people, and an exit code for programs."""

from __future__ import annotations

import errno
import sys
from collections.abc import Iterable
from typing import Final

import click
import msgspec

from engine.cli.plain import one_line
from events.errors import Conflict, JournalError, Refused, Unavailable

__all__ = ("BAD_INPUT", "DONE", "INTERRUPTED", "NO", "UNAVAILABLE", "Failure", "Interrupted", "failure_of", "report")

DONE: Final = 0
NO: Final = 1
"""The command did its work, and the answer is no: a call failed, a difference or a fault was found."""
BAD_INPUT: Final = 2
UNAVAILABLE: Final = 3
INTERRUPTED: Final = 130

_PIPE_CLOSED: Final = 141
"""What a shell reports of a program whose reader left."""


class Interrupted(Exception):
    """Somebody ended the command; the text says where it stands and how to go on."""


class Failure(msgspec.Struct, frozen=True):
    """How a command ends.

    :ivar line: what to say on standard error; None: nothing (the reader of our output has left)
    """

    code: int
    line: str | None


def failure_of(error: BaseException) -> Failure:
    """Return the exit code and the line for anything that ends a command."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    match error:
        case click.UsageError():
            return Failure(BAD_INPUT, _usage(error))
        case click.ClickException():
            return Failure(BAD_INPUT, error.format_message())
        case Refused():
            return Failure(BAD_INPUT, str(error))
        case Conflict():
            return Failure(UNAVAILABLE, f"{error}; try again")
        case Unavailable() | JournalError():
            return Failure(UNAVAILABLE, str(error))
        case Interrupted():
            return Failure(INTERRUPTED, str(error))
        case KeyboardInterrupt():
            return Failure(INTERRUPTED, "interrupted")
        case BrokenPipeError():
            return Failure(_PIPE_CLOSED, None)
        case OSError():
            return Failure(UNAVAILABLE, _system(error))
        case ImportError():
            return Failure(UNAVAILABLE, f"{error}; run `calljournal doctor`")
        case _:
            said = f"{type(error).__name__}: {error}"
            return Failure(UNAVAILABLE, f"unexpected {said}; --debug shows where: please report it")


def _usage(error: click.UsageError) -> str:
    command = error.ctx.command_path if error.ctx else "calljournal"
    return f"{error.format_message().rstrip('.')}; see `{command} --help`"


def _system(error: OSError) -> str:
    said = error.strerror or str(error) or type(error).__name__
    place = f"{error.filename}: " if error.filename else ""
    advice = "; free some space" if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
    return f"{place}{said}{advice}"


def report(failure: Failure, secrets: Iterable[str] = ()) -> None:
    """Say on standard error what was wrong, in one line, without the secrets."""
    if failure.line is None or sys.stderr is None:
        return
    line = one_line(failure.line)
    for secret in secrets:
        line = line.replace(secret, "***")
    try:
        print(f"calljournal: {line}", file=sys.stderr, flush=True)
    except (OSError, ValueError):
        # Nobody can be told that nobody can be told; the exit code stands.
        return
