"""Whether there is a terminal on which somebody can be asked."""

from __future__ import annotations

import sys
from typing import Literal, TypeAlias

import click

__all__ = ("Approval", "require_terminal")

Approval: TypeAlias = Literal["ask", "never", "always"]
"""What ``run`` does with calls that need approval: ask on the terminal, leave them waiting, or approve each."""


def require_terminal() -> None:
    """Refuse to ask where nobody can answer.

    :raises click.UsageError: if standard input or standard error is no terminal
    """
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr)):
        raise click.UsageError("--approve ask needs a terminal to ask on; use --approve always, or calljournal approve")
