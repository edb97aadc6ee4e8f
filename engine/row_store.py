"""Stored tool rows read from the journal's database: whose they are, and who may use them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import msgspec
from sqlalchemy import ColumnElement, Select, and_, or_, select

from engine.row_definition import RowDefinition
from engine.rows import ToolRow
from engine.schema import team_members, tool_optouts, tool_rows, tool_shares
from events.errors import LogUnavailable, Refused
from events.keys import tenant_column, tenant_of
from events.store import Store

__all__ = ("COLUMNS", "EVERYONE", "granted", "read_optouts", "read_rows", "read_vouched", "row_from")

EVERYONE: Final = "*"
"""The grantee of a row that is everyone's to use; no encoded tenant is spelt so."""

COLUMNS: Final = (
    tool_rows.c.id,
    tool_rows.c.tenant,
    tool_rows.c.version,
    tool_rows.c.definition,
    tool_rows.c.credentials,
)


async def read_rows(store: Store, user_id: str | None, ids: Collection[str] | None = None) -> list[ToolRow]:
    """Return the rows that a user may use, its own first, each in its owner's order; inactive ones too.

    :param ids: only these
    :raises LogUnavailable: if they cannot be read
    """
    tenant = tenant_column(user_id)
    wanted = or_(tool_rows.c.tenant == tenant, tool_rows.c.id.in_(granted(tenant)))
    if ids is not None:
        wanted = and_(wanted, tool_rows.c.id.in_(sorted(ids)))
    ordered = _select(wanted).order_by(tool_rows.c.tenant != tenant, tool_rows.c.ordinal, tool_rows.c.id)
    return [row_from(*found) for found in await store.read(ordered)]


async def read_vouched(store: Store, ids: Collection[str]) -> list[ToolRow]:
    """Return rows by their ids, whoever owns them. :raises LogUnavailable: if they cannot be read"""
    return [row_from(*found) for found in await store.read(_select(tool_rows.c.id.in_(sorted(ids))))]


async def read_optouts(store: Store, user_id: str | None) -> frozenset[str]:
    """Return the names of the default tools that a user has switched off. :raises LogUnavailable: if unreadable"""
    wanted = select(tool_optouts.c.name).where(tool_optouts.c.tenant == tenant_column(user_id))
    return frozenset(name for (name,) in await store.read(wanted))


def granted(tenant: str, role: str | None = None) -> Select[Any]:
    """Return the select of the ids of rows that others let a tenant use.

    :param role: only those where it has this role
    """
    teams = select(team_members.c.team).where(team_members.c.tenant == tenant)
    grant = tool_shares.c
    to_tenant = or_(
        and_(grant.kind == "user", grant.grantee == tenant),
        and_(grant.kind == "everyone", grant.grantee == EVERYONE),
        and_(grant.kind == "team", grant.grantee.in_(teams)),
    )
    return select(grant.row_id).where(to_tenant if role is None else and_(to_tenant, grant.role == role))


def row_from(row_id: str, tenant: str, version: int, definition: str, credentials: str | None) -> ToolRow:
    """Return a row as it is kept. :raises LogUnavailable: if this release cannot read it"""
    try:
        said = msgspec.json.decode(definition, type=RowDefinition)
        own = {name: getattr(said, name) for name in said.__struct_fields__}
        return ToolRow(id=row_id, user_id=tenant_of(tenant), version=version, credentials=credentials, **own)
    except (msgspec.DecodeError, Refused) as error:
        raise LogUnavailable(f"tool row {row_id!r} cannot be read by this release ({error}); upgrade it") from error


def _select(wanted: ColumnElement[bool]) -> Select[Any]:
    return select(*COLUMNS).where(wanted)
