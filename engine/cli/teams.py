"""``calljournal teams``: who is in which team, so that rows can be shared to all of its members."""

from __future__ import annotations

from functools import partial
from typing import Any

import anyio
import click

from engine.cli.failure import DONE
from engine.cli.options import Choice, shared_options, taking

__all__ = ("teams",)

_TEAM = click.argument("team", metavar="TEAM")
_MEMBER = click.argument("member", metavar="USER")


@click.group()
@shared_options("database", "as_json")
@click.pass_context
def teams(context: click.Context, database: str | None, as_json: bool | None) -> None:
    """Say who is in which team; tools can be shared to a team."""
    context.obj = Choice(database=database, as_json=as_json).over(context.find_object(Choice) or Choice())


@teams.command()
@_TEAM
@_MEMBER
@taking("database", "as_json")
def join(choice: Choice, team: str, member: str) -> int:
    """Take a user into a team; the first makes it."""
    anyio.run(partial(_change, choice, "join", team, member))
    return DONE


@teams.command()
@_TEAM
@_MEMBER
@taking("database", "as_json")
def leave(choice: Choice, team: str, member: str) -> int:
    """Take a user out of a team: what is shared to the team is not the user's any more."""
    anyio.run(partial(_change, choice, "leave", team, member))
    return DONE


async def _change(choice: Choice, verb: str, team: str, member: str) -> None:
    from engine.cli.database import opened
    from engine.teams import Teams

    async with opened(choice.url, make=verb == "join") as log:
        kept = Teams(log.store)
        await (kept.join if verb == "join" else kept.leave)(team, member)
    said = "is in" if verb == "join" else "is not any more in"
    _print(choice, [{"team": team, "user": member, "member": verb == "join"}], [f"{member} {said} {team}"])


@teams.command()
@_TEAM
@taking("database", "as_json")
def members(choice: Choice, team: str) -> int:
    """Print who is in a team."""
    anyio.run(partial(_members, choice, team))
    return DONE


async def _members(choice: Choice, team: str) -> None:
    from engine.cli.database import opened
    from engine.teams import Teams

    async with opened(choice.url) as log:
        found = await Teams(log.store).members(team)
    lines = [member if member is not None else "(no user)" for member in found] or ["nobody"]
    _print(choice, [{"team": team, "user": member} for member in found], lines)


def _print(choice: Choice, records: list[dict[str, Any]], lines: list[str]) -> None:
    from engine.cli.output import Output
    from engine.cli.plain import one_line

    output = Output(choice)
    if output.as_json:
        for record in records:
            output.record(record)
    else:
        for line in lines:
            output.console.print(one_line(line), soft_wrap=True)
    output.flush()
