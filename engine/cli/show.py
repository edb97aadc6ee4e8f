"""``calljournal events`` and ``attempts``: what is there."""

from __future__ import annotations

from functools import partial
from typing import get_args

import anyio
import click
import msgspec
from msgspec.structs import replace

from engine.cli.failure import DONE, Interrupted
from engine.cli.options import Choice, taking
from events.keys import require_storable
from events.masking import masked
from events.transitions import Status

__all__ = ("attempts", "events")

_SHOWN = 50
_LAST = 2**63 - 1
_DIGITS = 100


@click.command()
@click.option(
    "--after", metavar="N", default="0", help="Begin behind this position; `end`: with what comes from now on."
)
@click.option("--follow", is_flag=True, help="Go on with what is appended, until interrupted.")
@click.option("--key", metavar="KEY", help="One call only, by its journal key.")
@click.option("--all-tenants", is_flag=True, help="Every tenant's events.")
@click.option("--full", is_flag=True, help="Whole events, as they are in the log, instead of the light copies.")
@taking("database", "user", "as_json")
def events(choice: Choice, after: str, follow: bool, key: str | None, all_tenants: bool, full: bool) -> int:
    """Print the events of the log."""
    if after != "end" and not (after.isdecimal() and len(after) < _DIGITS and int(after) <= _LAST):
        raise click.BadParameter(f"{after!r} is neither a position nor `end`", param_hint="'--after'")
    require_storable(key, "the key")
    if key is not None and (follow or all_tenants or after != "0"):
        raise click.UsageError("--key shows one call's whole stream; leave --follow, --after and --all-tenants out")
    if all_tenants and choice.user is not None:
        raise click.UsageError("--user names one tenant, --all-tenants every one; give one of the two")
    from engine.cli.feed import Feed, Selection

    wanted = Selection(
        after=None if after == "end" else int(after),
        follow=follow,
        key=key,
        user=choice.user,
        every=all_tenants,
        full=full,
    )
    feed = Feed(choice, wanted)
    try:
        anyio.run(feed.print)
    except KeyboardInterrupt:
        raise Interrupted(f"stopped at position {feed.position}; --after {feed.position} goes on from here") from None
    return DONE


@click.command()
@click.option("--status", type=click.Choice(get_args(Status)), help="Only calls that stand so.")
@click.option("--message", metavar="ID", help="Only the calls of this turn.")
@click.option("--all-tenants", is_flag=True, help="Every tenant's calls.")
@click.option(
    "--limit", type=click.IntRange(1, _LAST), metavar="N", help=f"The newest N; on a terminal {_SHOWN}, else all."
)
@taking("database", "user", "as_json")
def attempts(choice: Choice, status: Status | None, message: str | None, all_tenants: bool, limit: int | None) -> int:
    """Print the state of calls (tool_call_attempts)."""
    if all_tenants and choice.user is not None:
        raise click.UsageError("--user names one tenant, --all-tenants every one; give one of the two")
    require_storable(message, "the message id")
    anyio.run(partial(_print_attempts, choice, status, message, all_tenants, limit))
    return DONE


async def _print_attempts(
    choice: Choice, status: Status | None, message: str | None, all_tenants: bool, limit: int | None
) -> None:
    from engine.cli.database import opened
    from engine.cli.output import Output
    from engine.cli.rendering import attempts_table
    from projections.listing import Wanted, list_attempts

    output = Output(choice)
    wanted = Wanted(user_id=choice.user, every_tenant=all_tenants, status=status, message_id=message)
    async with opened(choice.url) as log:
        if output.as_json:
            async for row in list_attempts(log, wanted, limit):
                output.record(msgspec.to_builtins(replace(row, arguments=masked(row.arguments))))
        else:
            rows = [row async for row in list_attempts(log, wanted, limit or _SHOWN)]
            output.console.print(attempts_table(rows, all_tenants) if rows else "no calls")
    output.flush()
