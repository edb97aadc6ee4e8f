"""``calljournal kept``: what tools keep of a user, to look at, take along and erase."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec

import anyio
import click
import msgspec

from engine.cli.failure import DONE, NO
from engine.cli.options import Choice, shared_options, taking
from events.errors import Refused

__all__ = ("kept",)

P = ParamSpec("P")


class _Which(msgspec.Struct, frozen=True):
    tool: str | None
    row: str | None

    @property
    def words(self) -> str:
        tool = "" if self.tool is None else f" by {self.tool}"
        return tool if self.row is None else f"{tool} in row {self.row}"


def _which(function: Callable[P, Any]) -> Callable[P, Any]:
    row = click.option("--row", metavar="ID", help="Of this row only; of a wiki, its name.")
    return click.argument("tool", metavar="[TOOL]", required=False)(row(function))


@click.group("kept", invoke_without_command=True)
@shared_options("database", "user", "tools", "as_json")
@click.pass_context
def kept(
    context: click.Context, database: str | None, user: str | None, tools: tuple[Path, ...], as_json: bool | None
) -> Any:
    """Print how much tools keep of a user; export it, or erase it.

    That is what memory, notes, todo_list and wikis hold between conversations. The journal itself keeps the arguments
    and results of calls, and nothing of it is erased here.
    """
    own = Choice(database=database, user=user, tools=tools, as_json=as_json)
    context.obj = own.over(context.find_object(Choice) or Choice())
    return context.invoke(list_kept) if context.invoked_subcommand is None else None


@kept.command("list")
@_which
@taking("database", "user", "tools", "as_json")
def list_kept(choice: Choice, tool: str | None = None, row: str | None = None) -> int:
    """Print how much is kept, by tool, row and part: items and versions, with their bytes."""
    anyio.run(_list, choice, _Which(tool, row))
    return DONE


async def _list(choice: Choice, which: _Which) -> None:
    from engine.cli.output import Output
    from engine.cli.plain import one_line

    output = Output(choice)
    places = await _places(choice, which)
    for place in places:
        if output.as_json:
            output.record(msgspec.to_builtins(place))
        else:
            output.console.print(one_line(_line(place)), soft_wrap=True)
    if not places and not output.as_json:
        output.console.print("nothing is kept")
    output.flush()


def _line(place: Any) -> str:
    versions = f"{place.versions:,} version(s), {place.past:,} bytes"
    return f"{_named(place)}: {place.items:,} item(s), {place.size:,} bytes; {versions}"


def _named(place: Any) -> str:
    part = "" if place.part is None else f" ({place.part})"
    return f"{place.tool} {place.row}{part}"


@kept.command()
@_which
@click.option("--history", is_flag=True, help="What each thing said at each version too, deleted ones included.")
@taking("database", "user", "tools")
def export(choice: Choice, tool: str | None, row: str | None, history: bool) -> int:
    """Print everything that is kept, one JSON object a line, on a terminal too."""
    anyio.run(partial(_export, choice, _Which(tool, row), history))
    return DONE


async def _export(choice: Choice, which: _Which, history: bool) -> None:
    from engine.cli.kept_rows import kept_rows
    from engine.cli.output import Output
    from engine.kept import Kept

    output = Output(choice)
    async with kept_rows(choice) as rows:
        found = Kept(rows.store, rows.tools).export(
            user_id=choice.user, tool=which.tool, row=which.row, history=history
        )
        async with aclosing(found) as records:
            async for record in records:
                output.record(msgspec.structs.asdict(record))
    output.flush()


@kept.command()
@_which
@click.option("--yes", is_flag=True, help="Do not ask.")
@taking("database", "user", "tools", "as_json")
def erase(choice: Choice, tool: str | None, row: str | None, yes: bool) -> int:
    """Erase everything that is kept, with its history; it cannot be brought back.

    It says how much there is, and asks. Without a terminal it needs --yes. Rows stay (`tools remove`), and so does the
    journal. The exit code is 1 if the answer is no.
    """
    which = _Which(tool, row)
    if not yes and not _agreed(choice, which):
        return NO
    anyio.run(_erase, choice, which)
    return DONE


def _agreed(choice: Choice, which: _Which) -> bool:
    if not (sys.stdin is not None and sys.stdin.isatty()):
        raise Refused("nobody can be asked whether to erase here; say --yes if that is what you mean")
    places = anyio.run(_places, choice, which)
    if not places:
        return True
    items, versions = sum(place.items for place in places), sum(place.versions for place in places)
    whose = "nobody" if choice.user is None else choice.user
    what = f"{items:,} item(s) and {versions:,} version(s) kept of {whose}{which.words}"
    return click.confirm(f"erase {what}, for ever?", err=True)


async def _erase(choice: Choice, which: _Which) -> None:
    from engine.cli.kept_rows import kept_rows
    from engine.cli.output import Output
    from engine.cli.plain import one_line
    from engine.kept import Kept

    output = Output(choice)
    async with kept_rows(choice) as rows:
        erased = await Kept(rows.store, rows.tools).erase(user_id=choice.user, tool=which.tool, row=which.row)
    for each in erased:
        if output.as_json:
            output.record(msgspec.to_builtins(each))
        else:
            said = f"{_named(each)}: erased {each.items:,} item(s) and {each.versions:,} version(s)"
            output.console.print(one_line(said), soft_wrap=True)
    if not erased and not output.as_json:
        output.console.print("nothing is kept")
    output.flush()


async def _places(choice: Choice, which: _Which) -> list[Any]:
    from engine.cli.kept_rows import kept_rows
    from engine.kept import Kept

    async with kept_rows(choice) as rows:
        found: list[Any] = await Kept(rows.store, rows.tools).list(user_id=choice.user, tool=which.tool, row=which.row)
        return found
