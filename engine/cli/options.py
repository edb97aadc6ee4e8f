"""Options that commands share; each may stand before the command's name or after it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, Final, Literal, ParamSpec, TypeAlias

import click
import msgspec

from events.keys import require_storable

__all__ = ("DEFAULT_DATABASE", "ENVIRONMENT", "Choice", "Shared", "shared_options", "taking")

DEFAULT_DATABASE: Final = "sqlite:///journal.db"
ENVIRONMENT: Final = "CALLJOURNAL_DATABASE_URL"

P = ParamSpec("P")
Shared: TypeAlias = Literal["database", "user", "tools", "as_json"]


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """What the shared options say.

    :ivar as_json: one JSON object a line; None: if standard output is no terminal
    """

    database: str | None = None
    user: str | None = None
    tools: tuple[Path, ...] = ()
    as_json: bool | None = None

    def over(self, outer: Choice) -> Choice:
        """Return this, with what it leaves open taken from the options before the command's name."""
        return Choice(
            database=outer.database if self.database is None else self.database,
            user=outer.user if self.user is None else self.user,
            tools=(*outer.tools, *self.tools),
            as_json=outer.as_json if self.as_json is None else self.as_json,
        )

    @property
    def url(self) -> str:
        """The database to use."""
        return DEFAULT_DATABASE if self.database is None else self.database


_OPTIONS: dict[str, Callable[[Any], Any]] = {
    "database": click.option(
        "--database",
        metavar="URL",
        help=f"The journal; else ${ENVIRONMENT}, else {DEFAULT_DATABASE}.",
    ),
    "user": click.option("--user", metavar="ID", help="The tenant; without it, the calls that have none."),
    "tools": click.option(
        "--tools",
        metavar="DIR",
        multiple=True,
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="A folder of tools besides the built-in ones; may be given again.",
    ),
    "as_json": click.option(
        "--json/--no-json",
        "as_json",
        default=None,
        help="One JSON object a line, or lines for people. Default: JSON unless on a terminal.",
    ),
}


def shared_options(*names: Shared) -> Callable[[Callable[P, Any]], Callable[P, Any]]:
    """Give a command some of the shared options, as plain parameters."""

    def decorate(function: Callable[P, Any]) -> Callable[P, Any]:
        for name in reversed(names):
            function = _OPTIONS[name](function)
        return function

    return decorate


def taking(*names: Shared) -> Callable[[Callable[Concatenate[Choice, P], int]], Callable[..., int]]:
    """Give a command some of the shared options as a ``Choice``, its first parameter."""

    def decorate(function: Callable[Concatenate[Choice, P], int]) -> Callable[..., int]:
        @shared_options(*names)
        @click.pass_context
        @wraps(function)
        def command(context: click.Context, /, *args: Any, **kwargs: Any) -> int:
            own = Choice(**{name: kwargs.pop(name) for name in names})
            choice = own.over(context.find_object(Choice) or Choice())
            require_storable(choice.user, "the user id")
            return function(choice, *args, **kwargs)

        return command

    return decorate
