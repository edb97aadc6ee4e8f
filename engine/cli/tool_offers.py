"""``calljournal tools offered``, ``accept`` and ``leave``: rows of others that wait until a user takes them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial

import anyio
import click

from engine.cli.failure import DONE
from engine.cli.options import Choice, taking
from engine.configured_rows import Rows
from engine.row_definition import KeptRow

__all__ = ("accept", "leave", "offered")


@click.command()
@taking("database", "user", "tools", "as_json")
def offered(choice: Choice) -> int:
    """Print the rows of others that wait until a user accepts them: whose, of which tool, with which actions.

    Names and texts in them are their owners' words.
    """
    anyio.run(_offered, choice)
    return DONE


@click.command()
@click.argument("row_id", metavar="ID")
@click.option("--version", type=int, metavar="N", help="Only if this is its version.")
@taking("database", "user", "tools", "as_json")
def accept(choice: Choice, row_id: str, version: int | None) -> int:
    """Take a row that is shared to a user, or to everyone, into the user's turns, and print it."""
    anyio.run(partial(_accept, choice, row_id, version))
    return DONE


@click.command()
@click.argument("row_id", metavar="ID")
@taking("database", "user", "tools", "as_json")
def leave(choice: Choice, row_id: str) -> int:
    """Take a row that was accepted out of a user's turns; it waits again."""
    anyio.run(partial(_leave, choice, row_id))
    return DONE


async def _offered(choice: Choice) -> None:
    from engine.cli.kept_rows import kept_rows

    async with kept_rows(choice) as rows:
        found = [(kept, await _names(rows, kept)) for kept in await rows.offers.list(user_id=choice.user)]
    _print(choice, found, None if found else "nothing waits to be accepted")


async def _accept(choice: Choice, row_id: str, version: int | None) -> None:
    from engine.cli.kept_rows import kept_rows

    async with kept_rows(choice) as rows:
        kept = await rows.offers.accept(row_id, user_id=choice.user, version=version)
        names = await _names(rows, kept)
    _print(choice, [(kept, names)], f"{row_id} is accepted")


async def _leave(choice: Choice, row_id: str) -> None:
    from engine.cli.kept_rows import kept_rows

    async with kept_rows(choice) as rows:
        kept = await rows.offers.withdraw(row_id, user_id=choice.user)
    still = "comes through a team still" if kept.accepted else "is not in your turns any more"
    _print(choice, [(kept, None)], f"{row_id} {still}")


async def _names(rows: Rows, kept: KeptRow) -> list[str]:
    """Return the names of a row's actions, where nothing is stored of them those of its tool as it comes.

    Its server is not asked: that would be with its owner's credentials.
    """
    from engine.cli.tool_lines import action_names
    from engine.loading import actions_metadata
    from events.errors import JournalError

    stored = action_names(kept.row)
    with suppress(JournalError):
        return stored or [str(entry["name"]) for entry in await actions_metadata(rows.tools.tool_of(kept.row))]
    return []


def _print(choice: Choice, found: Sequence[tuple[KeptRow, list[str] | None]], head: str | None) -> None:
    """Print rows with the names of their actions; only what was done, where there are none to say."""
    from engine.cli.output import Output
    from engine.cli.plain import one_line
    from engine.cli.tool_lines import row_lines, row_record

    output = Output(choice)
    if head is not None and not output.as_json:
        output.console.print(one_line(head), soft_wrap=True)
    for kept, names in found:
        if output.as_json:
            output.record(row_record(kept) | ({} if names is None else {"action_names": names}))
        elif names is not None:
            for line in row_lines(kept, names, []):
                output.console.print(line, soft_wrap=True)
    output.flush()
