"""``calljournal tools list``, ``show``, ``remove``, ``off`` and ``on``: the rows that a user has."""

from __future__ import annotations

from functools import partial
from typing import Any

import anyio
import click
import msgspec

from engine.cli.failure import DONE
from engine.cli.options import Choice, taking

__all__ = ("BY", "list_rows", "print_row", "remove", "show", "switch_off", "switch_on")

BY = click.option("--by", metavar="NAME", help="Who changes it; else the name you are logged in with.")


@click.command("list")
@taking("database", "user", "tools", "as_json")
def list_rows(choice: Choice) -> int:
    """Print a user's tools: its own rows, those shared to it, and the default tools."""
    anyio.run(_list, choice)
    return DONE


async def _list(choice: Choice) -> None:
    from engine.cli.kept_rows import kept_rows
    from engine.cli.output import Output
    from engine.cli.tool_lines import default_record, row_record, rows_table

    output = Output(choice)
    async with kept_rows(choice) as rows:
        found = await rows.list(user_id=choice.user)
        off = await rows.switched_off(user_id=choice.user)
    defaults = rows.tools.defaults()
    if output.as_json:
        for kept in found:
            output.record(row_record(kept))
        for name, row in defaults.items():
            output.record(default_record(row, name not in off))
    else:
        output.console.print(rows_table(found, {name: name not in off for name in defaults}))
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
    from engine.cli.tool_lines import row_lines, row_record, share_record

    output = Output(choice)
    async with kept_rows(choice) as rows:
        kept = await rows.get(row_id, user_id=choice.user)
        shares = await rows.shares(row_id, user_id=choice.user) if kept.role == "owner" else []
    if output.as_json:
        record = row_record(kept, whole=True)
        output.record(record | ({"shares": list(map(share_record, shares))} if kept.role == "owner" else {}))
    else:
        for line in row_lines(kept, _action_names(kept.row), shares):
            output.console.print(line, soft_wrap=True)
    output.flush()


def _action_names(row: Any) -> list[str]:
    """Return the names of a row's actions, as far as they are stored with it."""
    configured = row.config.get("actions")
    if isinstance(configured, dict):
        return list(map(str, configured))
    return [str(entry.get("name")) for entry in row.actions_metadata or ()]


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
    """Take a default tool out of a user's turns; agents that list it keep it."""
    anyio.run(partial(_switch, choice, name, False))
    return DONE


@click.command("on")
@click.argument("name", metavar="TOOL")
@taking("database", "user", "tools", "as_json")
def switch_on(choice: Choice, name: str) -> int:
    """Give a default tool back to a user's turns."""
    anyio.run(partial(_switch, choice, name, True))
    return DONE


async def _switch(choice: Choice, name: str, on: bool) -> None:
    from engine.cli.kept_rows import kept_rows
    from engine.cli.output import Output
    from engine.cli.plain import one_line
    from engine.cli.tool_lines import default_record

    output = Output(choice)
    async with kept_rows(choice) as rows:
        await (rows.switch_on if on else rows.switch_off)(name, user_id=choice.user)
    if output.as_json:
        output.record(default_record(rows.tools.defaults()[name], on))
    else:
        output.console.print(f"{one_line(name)} is {'on' if on else 'off'}")
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
