"""``calljournal approvals``: the calls that wait for a person, or were approved and wait to be run."""

from __future__ import annotations

from functools import partial

import anyio
import click
import msgspec

from engine.cli.failure import DONE
from engine.cli.options import Choice, taking

__all__ = ("approvals",)


@click.command()
@click.option("--all-tenants", is_flag=True, help="Every tenant's calls.")
@taking("database", "user", "as_json")
def approvals(choice: Choice, all_tenants: bool) -> int:
    """Print what waits for a person's approval.

    Each call with the arguments that would run, how long it has waited, until when it waits, and why. Calls that were
    approved and have not been run are listed too.
    """
    if all_tenants and choice.user is not None:
        raise click.UsageError("--user names one tenant, --all-tenants every one; give one of the two")
    anyio.run(partial(_print, choice, all_tenants))
    return DONE


async def _print(choice: Choice, all_tenants: bool) -> None:
    from engine.cli.database import opened
    from engine.cli.output import Output
    from engine.cli.waiting import list_waiting, waiting_lines
    from projections.listing import Wanted

    output = Output(choice)
    found = False
    async with opened(choice.url) as log:
        async for call in list_waiting(log, Wanted(user_id=choice.user, every_tenant=all_tenants, status="proposed")):
            found = True
            if output.as_json:
                output.record(msgspec.to_builtins(call))
            else:
                for line in waiting_lines(call):
                    output.console.print(line, soft_wrap=True)
    if not found and not output.as_json:
        output.console.print("nothing waits")
    output.flush()
