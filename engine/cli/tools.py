"""``calljournal tools``: the catalogue of tools, and the rows that users keep of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import click
import msgspec

from engine.cli.authorizing import authorize
from engine.cli.failure import DONE, NO
from engine.cli.options import Choice, shared_options, taking
from engine.cli.tool_changes import add, edit
from engine.cli.tool_offers import accept, leave, offered
from engine.cli.tool_rows import ask_first, list_rows, remove, show, switch_off, switch_on
from engine.cli.tool_sharing import share, unshare
from engine.cli.tool_trying import refresh, test

__all__ = ("tools",)


@click.group("tools", invoke_without_command=True)
@shared_options("database", "user", "tools", "as_json")
@click.pass_context
def tools(
    context: click.Context, database: str | None, user: str | None, tools: tuple[Path, ...], as_json: bool | None
) -> Any:
    """Print the catalogue of tools, and configure, share and test those that users keep.

    Without a subcommand: the catalogue.
    """
    own = Choice(database=database, user=user, tools=tools, as_json=as_json)
    context.obj = own.over(context.find_object(Choice) or Choice())
    return context.invoke(catalogue) if context.invoked_subcommand is None else None


@tools.command()
@taking("database", "tools", "as_json")
def catalogue(choice: Choice) -> int:
    """Print the catalogue of tools.

    What could not be taken into it is said on standard error; then the exit code is 1.
    """
    return NO if anyio.run(_print_catalogue, choice) else DONE


async def _print_catalogue(choice: Choice) -> bool:
    from engine.cli.catalogue import read_catalogue
    from engine.cli.outgoing import outgoing_policy
    from engine.cli.output import Output, note
    from engine.cli.permitted import tool_policy
    from engine.cli.rendering import catalogue_table

    output = Output(choice)
    found = await read_catalogue(choice.tools, tool_policy(), asking=outgoing_policy())
    if output.as_json:
        for entry in found.entries:
            output.record(msgspec.to_builtins(entry))
    else:
        output.console.print(catalogue_table(found.entries))
    output.flush()
    for problem in found.problems:
        note(f"{problem.source} is left out: {problem.reason}")
    return bool(found.problems)


for _command in (list_rows, show, add, edit, remove, test, refresh, authorize, share, unshare):
    tools.add_command(_command)
for _command in (offered, accept, leave, switch_off, switch_on, ask_first):
    tools.add_command(_command)
