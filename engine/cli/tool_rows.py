"""``calljournal tools list``, ``show``, ``remove``, ``off``, ``ask`` and ``on``: the rows that a user has."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import anyio
import click
import msgspec

from engine.cli.failure import DONE
from engine.cli.options import Choice, taking

__all__ = ("BY", "ask_first", "list_rows", "print_row", "remove", "show", "switch_off", "switch_on")

BY = click.option("--by", metavar="NAME", help="Who changes it; else the name you are logged in with.")


@click.command("list")
@taking("database", "user", "tools", "as_json")
def list_rows(choice: Choice) -> int:
    """Print a user's tools: its own rows, those shared to it, and the built-in ones.

    Of those: the default tools, and others of which the user, or the deployment, has said something.
    """
    anyio.run(_list, choice)
    return DONE


async def _list(choice: Choice) -> None:
    from engine.cli.kept_rows import kept_rows
    from engine.cli.output import Output
    from engine.cli.tool_lines import built_in_record, row_record, rows_table

    output = Output(choice)
    async with kept_rows(choice) as rows:
        found = await rows.list(user_id=choice.user)
        built_ins = await rows.built_ins.list(user_id=choice.user)
    named = [each for each in built_ins if each.default or each.set_by is not None]
    if output.as_json:
        for kept in found:
            output.record(row_record(kept))
        for each in named:
            output.record(built_in_record(each))
    else:
        output.console.print(rows_table(found, named))
        if waiting := sum(not kept.accepted for kept in found):
            output.console.print(f"{waiting} to be accepted before turns have them: see calljournal tools offered")
    output.flush()


@click.command()
@click.argument("row_id", metavar="ID")
@click.option("--versions", is_flag=True, help="Every version of it, oldest first, instead.")
@taking("database", "user", "tools", "as_json")
def show(choice: Choice, row_id: str, versions: bool) -> int:
    """Print a row with its configuration and to whom it is shared; secrets are never printed."""
    anyio.run(partial(_versions if versions else _show, choice, row_id))
    return DONE


async def _show(choice: Choice, row_id: str) -> None:
    from engine.cli.kept_rows import kept_rows
    from engine.cli.output import Output
    from engine.cli.tool_lines import action_names, row_lines, row_record, share_record

    output = Output(choice)
    async with kept_rows(choice) as rows:
        kept = await rows.get(row_id, user_id=choice.user)
        shares = await rows.shares(row_id, user_id=choice.user) if kept.role == "owner" else []
    if output.as_json:
        record = row_record(kept, whole=True)
        output.record(record | ({"shares": list(map(share_record, shares))} if kept.role == "owner" else {}))
    else:
        for line in row_lines(kept, action_names(kept.row), shares):
            output.console.print(line, soft_wrap=True)
    output.flush()


async def _versions(choice: Choice, row_id: str) -> None:
    from engine.cli.kept_rows import kept_rows
    from engine.cli.output import Output
    from engine.cli.tool_lines import version_lines
    from events.errors import NotFound

    output = Output(choice)
    async with kept_rows(choice) as rows:
        found = await rows.versions(row_id, user_id=choice.user)
    if not found:
        raise NotFound(f"there is no tool row {row_id!r}")
    if output.as_json:
        for version in found:
            output.record(msgspec.to_builtins(version))
    else:
        for line in version_lines(found):
            output.console.print(line, soft_wrap=True)
    output.flush()


@click.command()
@click.argument("row_id", metavar="ID")
@click.option("--version", type=int, metavar="N", help="Only if this is its version.")
@BY
@taking("database", "user", "tools", "as_json")
def remove(choice: Choice, row_id: str, version: int | None, by: str | None) -> int:
    """Remove a row, its secrets and its shares; its versions stay."""
    anyio.run(partial(_remove, choice, row_id, version, by))
    return DONE


async def _remove(choice: Choice, row_id: str, version: int | None, by: str | None) -> None:
    from engine.cli.kept_rows import kept_rows
    from engine.cli.working import person

    async with kept_rows(choice) as rows:
        row = await rows.remove(row_id, user_id=choice.user, version=version, by=person(by))
    print_row(choice, row, "removed")


@click.command("off")
@click.argument("name", metavar="TOOL")
@taking("database", "user", "tools", "as_json")
def switch_off(choice: Choice, name: str) -> int:
    """Take a built-in tool out of a user's turns, its agents' too."""
    anyio.run(partial(_switch, choice, name, "off"))
    return DONE


@click.command("ask")
@click.argument("name", metavar="TOOL")
@taking("database", "user", "tools", "as_json")
def ask_first(choice: Choice, name: str) -> int:
    """Have a person approve each call of a built-in tool in a user's turns, its agents' too."""
    anyio.run(partial(_switch, choice, name, "ask"))
    return DONE


@click.command("on")
@click.argument("name", metavar="TOOL")
@taking("database", "user", "tools", "as_json")
def switch_on(choice: Choice, name: str) -> int:
    """Take back what was said of a built-in tool with off or ask."""
    anyio.run(partial(_switch, choice, name, "on"))
    return DONE


async def _switch(choice: Choice, name: str, standing: Literal["on", "off", "ask"]) -> None:
    from engine.cli.kept_rows import kept_rows
    from engine.cli.output import Output
    from engine.cli.tool_lines import built_in_line, built_in_record

    output = Output(choice)
    async with kept_rows(choice) as rows:
        built_in = await rows.built_ins.set(name, standing, user_id=choice.user)
    if output.as_json:
        output.record(built_in_record(built_in))
    else:
        output.console.print(built_in_line(built_in), soft_wrap=True)
    output.flush()


def print_row(choice: Choice, row: Any, verb: str, **more: Any) -> None:
    """Print what was done to a row, which has none of its secrets.

    :param more: what else a program is told
    """
    from engine.cli.output import Output
    from engine.cli.tool_lines import row_line

    output = Output(choice)
    if output.as_json:
        named = {name: getattr(row, name) for name in ("id", "name", "label", "active", "version")}
        # Whole, an imported API's actions are megabytes; `show` prints them.
        named["config"] = {key: value for key, value in row.config.items() if key != "actions"}
        output.record({**named, "actions": msgspec.to_builtins(row.actions), **more})
    else:
        output.console.print(row_line(row, verb), soft_wrap=True)
    output.flush()
