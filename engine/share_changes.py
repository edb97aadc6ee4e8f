"""Shares, teams and standings of built-in tools in the journal's database; each change raises the epoch first."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, and_, delete, insert, select

from engine.acceptances import forget_acceptances
from engine.epoch import raise_epoch
from engine.row_changes import hold
from engine.row_definition import Held
from engine.schema import team_members, tool_optouts, tool_shares
from engine.sharing import Grantee, Share, SharedRole
from engine.tool_policy import ToolStanding
from events.errors import NotFound, Refused
from events.keys import tenant_column, tenant_of
from events.store import Store

__all__ = (
    "insert_member",
    "read_members",
    "read_shares",
    "read_teams",
    "remove_member",
    "remove_share",
    "write_share",
    "write_standing",
)

_SHARE = tool_shares.c
_MEMBER = team_members.c


async def read_shares(store: Store, row_id: str) -> list[Share]:
    """Return a row's shares. :raises LogUnavailable: if they cannot be read"""
    ordered = (_SHARE.kind, _SHARE.grantee)
    statement = select(*ordered, _SHARE.role).where(_SHARE.row_id == row_id).order_by(*ordered)
    return [Share(_grantee(kind, grantee), role) for kind, grantee, role in await store.read(statement)]


def write_share(connection: Connection, user_id: str | None, row_id: str, grantee: Grantee, role: SharedRole) -> Share:
    """Share a row, or give another role to whom it is shared already.

    :raises NotFound: if the user has no such row, or is in no such team
    :raises Refused: if the user does not own it
    """
    _owned(connection, user_id, row_id)
    if grantee.kind == "team":
        _require_member(connection, user_id, grantee)
    if not connection.execute(delete(tool_shares).where(_to(row_id, grantee))).rowcount:
        forget_acceptances(connection, row_id, grantee)
    values = {"row_id": row_id, "kind": grantee.kind, "grantee": grantee.column, "role": role}
    connection.execute(insert(tool_shares).values(values))
    return Share(grantee, role)


def remove_share(connection: Connection, user_id: str | None, row_id: str, grantee: Grantee) -> None:
    """End a share, and with it its acceptances.

    :raises NotFound: if the user has no such row, or it is not shared so
    :raises Refused: if the user does not own it
    """
    _owned(connection, user_id, row_id)
    if not connection.execute(delete(tool_shares).where(_to(row_id, grantee))).rowcount:
        raise NotFound(f"tool row {row_id!r} is not shared to {grantee}")
    forget_acceptances(connection, row_id, grantee)


def insert_member(connection: Connection, team: str, user_id: str | None) -> None:
    """Take a user into a team; one who is in it stays."""
    raise_epoch(connection)
    member = {"team": team, "tenant": tenant_column(user_id)}
    if connection.execute(select(_MEMBER.team).filter_by(**member)).first() is None:
        connection.execute(insert(team_members).values(member))


def remove_member(connection: Connection, team: str, user_id: str | None) -> None:
    """Take a user out of a team. :raises NotFound: if it is not in there"""
    raise_epoch(connection)
    which = and_(_MEMBER.team == team, _MEMBER.tenant == tenant_column(user_id))
    if not connection.execute(delete(team_members).where(which)).rowcount:
        raise NotFound(f"the user is not in team {team!r}")


async def read_members(store: Store, team: str) -> list[str | None]:
    """Return who is in a team. :raises LogUnavailable: if that cannot be read"""
    statement = select(_MEMBER.tenant).where(_MEMBER.team == team).order_by(_MEMBER.tenant)
    return [tenant_of(tenant) for (tenant,) in await store.read(statement)]


async def read_teams(store: Store, user_id: str | None) -> list[str]:
    """Return the teams that a user is in. :raises LogUnavailable: if they cannot be read"""
    statement = select(_MEMBER.team).where(_MEMBER.tenant == tenant_column(user_id)).order_by(_MEMBER.team)
    return [team for (team,) in await store.read(statement)]


def write_standing(connection: Connection, user_id: str | None, name: str, standing: ToolStanding) -> None:
    """Note what a user says of a built-in tool; ``on`` is what holds where nothing is said."""
    raise_epoch(connection)
    said = {"tenant": tenant_column(user_id), "name": name}
    connection.execute(delete(tool_optouts).filter_by(**said))
    if standing != "on":
        connection.execute(insert(tool_optouts).values(**said, standing=standing))


def _owned(connection: Connection, user_id: str | None, row_id: str) -> Held:
    held = hold(connection, user_id, row_id)
    if held.role != "owner":
        raise Refused(f"tool row {row_id!r} is shared to you; only its owner says to whom it is shared")
    return held


def _require_member(connection: Connection, user_id: str | None, grantee: Grantee) -> None:
    wanted = (_MEMBER.team == grantee.name, _MEMBER.tenant == tenant_column(user_id))
    if connection.execute(select(_MEMBER.team).where(*wanted)).first() is None:
        raise NotFound(f"there is no team {grantee.name!r} that you are in")


def _to(row_id: str, grantee: Grantee) -> Any:
    return and_(_SHARE.row_id == row_id, _SHARE.kind == grantee.kind, _SHARE.grantee == grantee.column)


def _grantee(kind: str, column: str) -> Grantee:
    match kind:
        case "user":
            return Grantee.user(tenant_of(column))
        case "team":
            return Grantee.team(column)
        case _:
            return Grantee.everyone()
