"""``calljournal tools share`` and ``unshare``: who besides its owner uses a row."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ParamSpec

import anyio
import click

from engine.cli.failure import DONE
from engine.cli.options import Choice, taking

__all__ = ("share", "unshare")

P = ParamSpec("P")


def _grantee(function: Callable[P, Any]) -> Callable[P, Any]:
    for option in (
        click.option("--everyone", is_flag=True, help="Every user of this journal."),
        click.option("--team", metavar="TEAM", help="The members of a team, as they come and go."),
        click.option("--to", "to", metavar="USER", help="One user."),
    ):
        function = option(function)
    return function


@click.command()
@click.argument("row_id", metavar="ID")
@_grantee
@click.option("--editor", is_flag=True, help="They may change its actions too; else they only use it.")
@taking("database", "user", "tools", "as_json")
def share(choice: Choice, row_id: str, to: str | None, team: str | None, everyone: bool, editor: bool) -> int:
    """Let others use a row, with its secrets, which they never see.

    Members of a team have it at once; a user, and everyone, only once they accept it (`tools accept`).
    """
    anyio.run(partial(_share, choice, row_id, _one(to, team, everyone), editor))
    return DONE


@click.command()
@click.argument("row_id", metavar="ID")
@_grantee
@taking("database", "user", "tools", "as_json")
def unshare(choice: Choice, row_id: str, to: str | None, team: str | None, everyone: bool) -> int:
    """End a share."""
    anyio.run(partial(_unshare, choice, row_id, _one(to, team, everyone)))
    return DONE


def _one(to: str | None, team: str | None, everyone: bool) -> Any:
    from engine.sharing import Grantee

    if (to is not None) + (team is not None) + everyone != 1:
        raise click.UsageError("with whom? give one of --to USER, --team TEAM and --everyone")
    if everyone:
        return Grantee.everyone()
    return Grantee.user(to) if team is None else Grantee.team(team)


async def _share(choice: Choice, row_id: str, grantee: Any, editor: bool) -> None:
    from engine.cli.kept_rows import kept_rows

    async with kept_rows(choice) as rows:
        made = await rows.share(row_id, grantee, "editor" if editor else "viewer", user_id=choice.user)
    _print(choice, row_id, grantee, made.role, f"{row_id} is shared to {grantee}: {made.role}")


async def _unshare(choice: Choice, row_id: str, grantee: Any) -> None:
    from engine.cli.kept_rows import kept_rows

    async with kept_rows(choice) as rows:
        await rows.unshare(row_id, grantee, user_id=choice.user)
    _print(choice, row_id, grantee, None, f"{row_id} is not shared to {grantee} any more")


def _print(choice: Choice, row_id: str, grantee: Any, role: str | None, text: str) -> None:
    from engine.cli.output import Output
    from engine.cli.plain import one_line

    output = Output(choice)
    if output.as_json:
        output.record({"id": row_id, "kind": grantee.kind, "name": grantee.name, "role": role})
    else:
        output.console.print(one_line(text), soft_wrap=True)
    output.flush()
