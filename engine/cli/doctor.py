"""``calljournal doctor``: looks at the environment and the database, and says what to do."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
import anyio.to_thread
import click
import msgspec

from engine.cli.failure import DONE, NO
from engine.cli.finding import Finding
from engine.cli.options import Choice, taking

__all__ = ("doctor",)


@click.command()
@taking("database", "tools", "as_json")
def doctor(choice: Choice) -> int:
    """Say what is wrong, and what to do.

    Looks at Python, the libraries, the packages beside ours, the tools and the database.

    Exit code 1: something is. Warnings alone give 0.
    """
    return DONE if anyio.run(_examine, choice) else NO


async def _examine(choice: Choice) -> bool:
    from engine.cli.output import Output
    from engine.cli.rendering import finding_lines

    output = Output(choice)
    faults = 0
    async for finding in _findings(choice):
        faults += finding.level == "fault"
        if output.as_json:
            output.record(msgspec.to_builtins(finding))
        else:
            for line in finding_lines(finding):
                output.console.print(line, soft_wrap=True)
        output.flush()
    if not output.as_json:
        said = "nothing is wrong" if not faults else "1 fault" if faults == 1 else f"{faults} faults"
        output.console.print(said, style="bold red" if faults else "bold green")
    output.flush()
    return not faults


async def _findings(choice: Choice) -> AsyncIterator[Finding]:
    from engine.cli.environment import check_environment

    for finding in check_environment():
        yield finding
    async for finding in _tool_findings(choice):
        yield finding
    from engine.cli.health import check_database

    async for finding in check_database(choice.url):
        yield finding
    from engine.cli.spool import check_spool

    for finding in await anyio.to_thread.run_sync(lambda: tuple(check_spool(choice.url))):
        yield finding


async def _tool_findings(choice: Choice) -> AsyncIterator[Finding]:
    from engine.cli.catalogue import read_catalogue
    from engine.cli.outgoing import outgoing_policy
    from engine.cli.permitted import tool_policy
    from engine.defaults import default_rows, require_usable
    from engine.discovery import ToolManager
    from events.errors import Refused

    catalogue = await read_catalogue(choice.tools, asking=outgoing_policy())
    yield Finding("ok", "tools", f"{len(catalogue.entries)} found")
    for problem in catalogue.problems:
        yield Finding("fault", "tools", f"{problem.source}: {problem.reason}", "mend it, or take it away")
    for entry in catalogue.entries:
        if entry.unavailable is not None:
            yield Finding("warning", "tools", f"{entry.name} is in no turn: {entry.unavailable}")
    manager = ToolManager(choice.tools)
    try:
        policy = tool_policy()
        require_usable(policy, manager, catalogue.rows)
        default_rows(manager, policy)
    except Refused as error:
        yield Finding("fault", "tool policy", str(error), "change the environment, which says so")
