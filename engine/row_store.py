"""Stored tool rows read from the journal's database: whose they are, and who may use them."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import ColumnElement, Select, and_, case, literal, null, or_, select, true, union_all

from engine.row_definition import decoded_definition
from engine.rows import ToolRow
from engine.schema import team_members, tool_acceptances, tool_optouts, tool_rows, tool_shares
from engine.tool_policy import Standings, standing_of
from events.errors import LogUnavailable, Refused
from events.keys import tenant_column, tenant_of
from events.store import Store

__all__ = (
    "COLUMNS",
    "EVERYONE",
    "accepted",
    "granted",
    "read_rows",
    "read_standings",
    "read_turn",
    "read_vouched",
    "row_from",
    "shared_directly",
)

_log = logging.getLogger("calljournal.rows")

EVERYONE: Final = "*"
"""The grantee of a row that is everyone's to use; no encoded tenant is spelt so."""

COLUMNS: Final = (
    tool_rows.c.id,
    tool_rows.c.tenant,
    tool_rows.c.version,
    tool_rows.c.definition,
    tool_rows.c.credentials,
)


async def read_turn(store: Store, user_id: str | None) -> tuple[tuple[ToolRow, ...], Standings]:
    """Return what a user's turns have: its own rows, then others' that it has accepted; what it says of built-ins.

    Both in one read, so that they are of one moment; each owner's rows in its order, inactive ones too.

    :raises LogUnavailable: if they cannot be read
    """
    tenant = tenant_column(user_id)
    optouts = tool_optouts.c
    said = select(optouts.name, optouts.standing, null(), null(), null(), literal(2), null())
    said = said.where(optouts.tenant == tenant)
    place = case((tool_rows.c.tenant == tenant, literal(0)), else_=literal(1)).label("place")
    of_turn = or_(tool_rows.c.tenant == tenant, tool_rows.c.id.in_(accepted(tenant)))
    rows = select(*COLUMNS, place, tool_rows.c.ordinal).where(of_turn)
    both = union_all(rows, said).subquery()
    found = await store.read(select(both).order_by(both.c.place, both.c.ordinal, both.c.id))
    stored = [tuple(each[: len(COLUMNS)]) for each in found if each.place < 2]
    return tuple(_readable(stored)), {each.id: standing_of(each.tenant) for each in found if each.place == 2}


async def read_rows(store: Store, user_id: str | None, ids: Collection[str]) -> list[ToolRow]:
    """Return those of some rows that a user may use, its own first, each in its owner's order; inactive ones too.

    One that this release cannot read is left out, and logged.

    :raises LogUnavailable: if they cannot be read
    """
    tenant = tenant_column(user_id)
    wanted = and_(_usable_by(tenant), tool_rows.c.id.in_(sorted(ids)))
    ordered = select(*COLUMNS).where(wanted).order_by(tool_rows.c.tenant != tenant, tool_rows.c.ordinal, tool_rows.c.id)
    return _readable(await store.read(ordered))


async def read_vouched(store: Store, ids: Collection[str]) -> list[ToolRow]:
    """Return rows by their ids, whoever owns them. :raises LogUnavailable: if they cannot be read"""
    return _readable(await store.read(select(*COLUMNS).where(tool_rows.c.id.in_(sorted(ids)))))


async def read_standings(store: Store, user_id: str | None) -> Standings:
    """Return what a user has said of built-in tools. :raises LogUnavailable: if that cannot be read"""
    optouts = tool_optouts.c
    wanted = select(optouts.name, optouts.standing).where(optouts.tenant == tenant_column(user_id))
    return {name: standing_of(standing) for name, standing in await store.read(wanted)}


def _usable_by(tenant: str) -> ColumnElement[bool]:
    return or_(tool_rows.c.tenant == tenant, tool_rows.c.id.in_(granted(tenant)))


def granted(tenant: str, role: str | None = None) -> Select[Any]:
    """Return the select of the ids of rows that others let a tenant use.

    :param role: only those where it has this role
    """
    to_tenant = or_(shared_directly(tenant), _through_team(tenant))
    of_role = true() if role is None else tool_shares.c.role == role
    return select(tool_shares.c.row_id).where(to_tenant, of_role)


def accepted(tenant: str) -> Select[Any]:
    """Return the select of the ids of others' rows that a tenant wants in its turns.

    Those of its teams: whoever is in one has agreed to what its members share there. Those shared to it, or to
    everyone, once it has accepted that share.
    """
    share, acceptance = tool_shares.c, tool_acceptances.c
    said = select(acceptance.row_id).where(
        acceptance.tenant == tenant, acceptance.row_id == share.row_id, acceptance.kind == share.kind
    )
    agreed = or_(_through_team(tenant), and_(shared_directly(tenant), said.exists()))
    return select(share.row_id).where(agreed)


def shared_directly(tenant: str) -> ColumnElement[bool]:
    """Return the condition that a share is to this tenant, or to everyone."""
    share = tool_shares.c
    return or_(
        and_(share.kind == "user", share.grantee == tenant),
        and_(share.kind == "everyone", share.grantee == EVERYONE),
    )


def _through_team(tenant: str) -> ColumnElement[bool]:
    teams = select(team_members.c.team).where(team_members.c.tenant == tenant)
    return and_(tool_shares.c.kind == "team", tool_shares.c.grantee.in_(teams))


def row_from(row_id: str, tenant: str, version: int, definition: str, credentials: str | None) -> ToolRow:
    """Return a row as it is kept. :raises LogUnavailable: if this release cannot read it"""
    try:
        said = decoded_definition(definition)
        own = {name: getattr(said, name) for name in said.__struct_fields__}
        return ToolRow(id=row_id, user_id=tenant_of(tenant), version=version, credentials=credentials, **own)
    except (msgspec.DecodeError, Refused) as error:
        raise LogUnavailable(f"tool row {row_id!r} cannot be read by this release ({error}); upgrade it") from error


def _readable(found: Iterable[Sequence[Any]]) -> list[ToolRow]:
    rows = []
    for columns in found:
        try:
            rows.append(row_from(*columns))
        except LogUnavailable as error:
            # A newer release's row, perhaps somebody else's: it must not take the others away.
            _log.warning("%s; it is left out", error)
    return rows
