"""Acceptances of shared rows in the journal's database; each change raises the epoch first."""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace
from sqlalchemy import ColumnElement, Connection, and_, delete, insert, select

from engine.row_changes import hold
from engine.row_definition import Held
from engine.row_store import shared_directly
from engine.schema import tool_acceptances, tool_shares
from engine.sharing import Grantee
from events.errors import Conflict, Refused
from events.keys import tenant_column

__all__ = ("forget_acceptances", "insert_acceptance", "remove_acceptance")

_ACCEPTANCE = tool_acceptances.c


def insert_acceptance(
    connection: Connection, user_id: str | None, row_id: str, version: int | None, now: datetime
) -> Held:
    """Note that a user accepts a row as it is shared to it, or to everyone, and return it; again: nothing.

    :raises NotFound: if it is not shared to the user
    :raises Refused: if it needs no acceptance
    :raises Conflict: if it is at another version
    """
    held = hold(connection, user_id, row_id)
    tenant = tenant_column(user_id)
    shares = select(tool_shares.c.kind).where(tool_shares.c.row_id == row_id, shared_directly(tenant))
    kinds = set(connection.execute(shares).scalars())
    if held.role == "owner" or not kinds:
        raise _needs_none(held)
    if version not in (None, held.row.version):
        raise Conflict(f"tool row {row_id!r} is at version {held.row.version}, not {version}; look at it again")
    known = select(_ACCEPTANCE.kind).where(_of(tenant, row_id))
    for kind in sorted(kinds.difference(connection.execute(known).scalars())):
        values = {"tenant": tenant, "row_id": row_id, "kind": kind, "accepted_at": now}
        connection.execute(insert(tool_acceptances).values(values))
    return replace(held, accepted=True)


def remove_acceptance(connection: Connection, user_id: str | None, row_id: str) -> Held:
    """Note that a user does not want a row that it had accepted, and return it; one that it had not: nothing.

    :raises NotFound: if it is not shared to the user
    :raises Refused: if it is in the user's turns without any acceptance
    """
    held = hold(connection, user_id, row_id)
    removed = connection.execute(delete(tool_acceptances).where(_of(tenant_column(user_id), row_id))).rowcount
    if held.accepted and not removed:
        raise _needs_none(held)
    return hold(connection, user_id, row_id)


def forget_acceptances(connection: Connection, row_id: str, grantee: Grantee) -> None:
    """Forget who accepted a share of a row, in the transaction that ends it, or begins it anew."""
    which = [_ACCEPTANCE.row_id == row_id, _ACCEPTANCE.kind == grantee.kind]
    if grantee.kind == "user":
        which.append(_ACCEPTANCE.tenant == grantee.column)
    connection.execute(delete(tool_acceptances).where(*which))


def _of(tenant: str, row_id: str) -> ColumnElement[bool]:
    return and_(_ACCEPTANCE.tenant == tenant, _ACCEPTANCE.row_id == row_id)


def _needs_none(held: Held) -> Refused:
    if held.role == "owner":
        return Refused(f"tool row {held.row.id!r} is your own: there is nothing to accept or to leave")
    return Refused(f"tool row {held.row.id!r} is shared to a team that you are in: it is yours as long as you are")
