"""Stored tool rows read from the journal's database: whose they are, and who may use them."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import ColumnElement, Select, and_, case, literal, null, or_, select, union_all

from engine.row_definition import decoded_definition
from engine.rows import ToolRow
from engine.schema import team_members, tool_optouts, tool_rows, tool_shares
from events.errors import LogUnavailable, Refused
from events.keys import tenant_column, tenant_of
from events.store import Store

__all__ = ("COLUMNS", "EVERYONE", "granted", "read_optouts", "read_rows", "read_turn", "read_vouched", "row_from")

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


async def read_turn(store: Store, user_id: str | None) -> tuple[tuple[ToolRow, ...], frozenset[str]]:
    """Return what a user's turns have: the rows that it may use, and the default tools that it has switched off.

    Both in one read, so that they are of one moment; see :func:`read_rows`.

    :raises LogUnavailable: if they cannot be read
    """
    tenant = tenant_column(user_id)
    off = select(tool_optouts.c.name, null(), null(), null(), null(), literal(2), null()).where(
        tool_optouts.c.tenant == tenant
    )
    place = case((tool_rows.c.tenant == tenant, literal(0)), else_=literal(1)).label("place")
    rows = select(*COLUMNS, place, tool_rows.c.ordinal).where(_usable_by(tenant))
    both = union_all(rows, off).subquery()
    found = await store.read(select(both).order_by(both.c.place, both.c.ordinal, both.c.id))
    stored = [tuple(each[: len(COLUMNS)]) for each in found if each.place < 2]
    return tuple(_readable(stored)), frozenset(each.id for each in found if each.place == 2)


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


async def read_optouts(store: Store, user_id: str | None) -> frozenset[str]:
    """Return the names of the default tools that a user has switched off. :raises LogUnavailable: if unreadable"""
    wanted = select(tool_optouts.c.name).where(tool_optouts.c.tenant == tenant_column(user_id))
    return frozenset(name for (name,) in await store.read(wanted))


def _usable_by(tenant: str) -> ColumnElement[bool]:
    return or_(tool_rows.c.tenant == tenant, tool_rows.c.id.in_(granted(tenant)))


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
