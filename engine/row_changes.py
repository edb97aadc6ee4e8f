"""Changes of stored tool rows: statements and transactions; every version of every row is kept.

Each transaction raises the epoch first (see ``engine.epoch``), then looks at the row anew: what was decided by an older
version of it, or by a share that is over, is not written.
"""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec.structs import replace
from sqlalchemy import Connection, Row, Select, case, delete, func, insert, literal, or_, select, update

from engine.epoch import raise_epoch
from engine.row_definition import Held, KeptRow, RowDefinition, RowVersion, decoded_definition, encoded_definition
from engine.row_store import COLUMNS, accepted, granted, row_from
from engine.rows import ToolRow
from engine.schema import tool_acceptances, tool_rates, tool_row_versions, tool_rows, tool_shares
from events.errors import Conflict, LogUnavailable, NotFound, Refused
from events.keys import tenant_column
from events.store import Store

__all__ = (
    "Moved",
    "delete_row",
    "hold",
    "insert_row",
    "read_held",
    "read_kept",
    "read_row_versions",
    "unknown_row",
    "write_row",
)

_log = logging.getLogger("calljournal.rows")
_STEP: Final = 10
_ROW = tool_rows.c
_VERSION = tool_row_versions.c


class Moved(Conflict):
    """The row was changed after it was read."""


def unknown_row(row_id: str) -> NotFound:
    """Return the error for a row that is not there, or is somebody else's: the two look the same."""
    return NotFound(f"there is no tool row {row_id!r}")


async def read_kept(store: Store, user_id: str | None) -> list[KeptRow]:
    """Return the rows that a user may use, its own first; inactive ones too, and none that cannot be understood.

    :raises LogUnavailable: if they cannot be read
    """
    tenant = tenant_column(user_id)
    ordered = _select(tenant).order_by(_ROW.tenant != tenant, _ROW.ordinal, _ROW.id)
    kept: list[KeptRow] = []
    for found in await store.read(ordered):
        try:
            kept.append(_held(found).shown)
        except LogUnavailable as error:
            # A newer release's, perhaps somebody else's: it must not hide the others.
            _log.warning("%s; it is left out", error)
    return kept


async def read_held(store: Store, user_id: str | None, row_id: str) -> Held:
    """Return a row that a user may use.

    :raises NotFound: if there is none
    :raises LogUnavailable: if it cannot be read
    """
    found = await store.read(_select(tenant_column(user_id)).where(_ROW.id == row_id))
    if not found:
        raise unknown_row(row_id)
    return _held(found[0])


async def read_row_versions(store: Store, user_id: str | None, row_id: str) -> list[RowVersion]:
    """Return every version of a row, oldest first, to its owner, for ever, and to those who may use it.

    :raises LogUnavailable: if they cannot be read
    """
    tenant = tenant_column(user_id)
    mine = or_(_VERSION.tenant == tenant, _VERSION.id.in_(granted(tenant)))
    columns = (_VERSION.version, _VERSION.definition, _VERSION.changed_at, _VERSION.changed_by)
    statement = select(*columns).where(_VERSION.id == row_id, mine).order_by(_VERSION.version)
    return [
        RowVersion(version=version, definition=_decoded(row_id, text), changed_at=changed_at, changed_by=changed_by)
        for version, text, changed_at, changed_by in await store.read(statement)
    ]


def hold(connection: Connection, user_id: str | None, row_id: str) -> Held:
    """Begin a change of a row: raise the epoch, and return the row as it is. :raises NotFound: if there is none"""
    raise_epoch(connection)
    found = connection.execute(_select(tenant_column(user_id)).where(_ROW.id == row_id)).first()
    if found is None:
        raise unknown_row(row_id)
    return _held(found)


def insert_row(connection: Connection, row: ToolRow, now: datetime, by: str | None) -> ToolRow:
    """Add a row as its first version, behind its owner's others, and return it as it is kept.

    :raises Refused: if there is, or was, one of its id
    """
    raise_epoch(connection)
    if connection.execute(select(_VERSION.id).where(_VERSION.id == row.id).limit(1)).first():
        raise Refused(f"the row id {row.id!r} cannot be used: it is, or was, another row's; give another")
    tenant = tenant_column(row.user_id)
    last = select(func.coalesce(func.max(_ROW.ordinal), 0)).where(_ROW.tenant == tenant)
    definition = _encoded(row)
    values = {
        "id": row.id,
        "tenant": tenant,
        "ordinal": int(connection.execute(last).scalar_one()) + _STEP,
        "version": 1,
        "definition": definition,
        "credentials": row.credentials,
        "created_at": now,
        "updated_at": now,
    }
    connection.execute(insert(tool_rows).values(values))
    kept = row_from(row.id, tenant, 1, definition, row.credentials)
    _keep_version(connection, kept, definition, now, by)
    return kept


def write_row(
    connection: Connection, user_id: str | None, seen: Held, row: ToolRow, now: datetime, by: str | None
) -> ToolRow:
    """Put the next version in the place of the one that was seen, and return it.

    :param row: as it is to be, whatever its version says
    :raises NotFound: if the row is gone
    :raises Moved: if it is not what was seen, or its user is another thing to it
    """
    _require_same(hold(connection, user_id, row.id), seen)
    definition = _encoded(row)
    kept = row_from(row.id, tenant_column(row.user_id), seen.row.version + 1, definition, row.credentials)
    values = {
        "version": kept.version,
        "definition": definition,
        "credentials": kept.credentials,
        "updated_at": now,
    }
    connection.execute(update(tool_rows).where(_ROW.id == row.id).values(values))
    _keep_version(connection, kept, definition, now, by)
    return kept


def delete_row(connection: Connection, user_id: str | None, seen: Held, now: datetime, by: str | None) -> ToolRow:
    """Remove a row, its secrets, its shares and its rates, and return it as it was; its versions stay.

    :raises NotFound: if it is gone
    :raises Moved: if it is not what was seen
    """
    current = hold(connection, user_id, seen.row.id)
    _require_same(current, seen)
    connection.execute(delete(tool_rows).where(_ROW.id == current.row.id))
    for shared in (tool_shares, tool_acceptances):
        connection.execute(delete(shared).where(shared.c.row_id == current.row.id))
    rates = tool_rates.c
    owner = tenant_column(current.row.user_id)
    connection.execute(delete(tool_rates).where(rates.tenant == owner, rates.tool_id == current.row.id))
    _keep_version(connection, replace(current.row, version=current.row.version + 1), None, now, by)
    return current.row


def _require_same(current: Held, seen: Held) -> None:
    if (current.row.version, current.role) != (seen.row.version, seen.role):
        raise Moved(f"tool row {seen.row.id!r} was changed meanwhile: it is at version {current.row.version}")


def _select(tenant: str) -> Select[Any]:
    editing = _ROW.id.in_(granted(tenant, "editor"))
    role = case((_ROW.tenant == tenant, literal("owner")), (editing, literal("editor")), else_=literal("viewer"))
    mine = or_(_ROW.tenant == tenant, _ROW.id.in_(granted(tenant)))
    waits = case((_ROW.tenant == tenant, 0), (_ROW.id.in_(accepted(tenant)), 0), else_=1)
    return select(*COLUMNS, role, _ROW.created_at, _ROW.updated_at, waits).where(mine)


def _held(found: Row[Any]) -> Held:
    columns, (role, created_at, updated_at, waits) = found[: len(COLUMNS)], found[len(COLUMNS) :]
    return Held(row_from(*columns), role, created_at, updated_at, not waits)


def _keep_version(connection: Connection, row: ToolRow, definition: str | None, now: datetime, by: str | None) -> None:
    values = {
        "id": row.id,
        "version": row.version,
        "tenant": tenant_column(row.user_id),
        "definition": definition,
        "changed_at": now,
        "changed_by": by,
    }
    connection.execute(insert(tool_row_versions).values(values))


def _encoded(row: ToolRow) -> str:
    try:
        return encoded_definition(row)
    except msgspec.ValidationError as error:
        raise Refused(f"this row of {row.name!r} is not valid: {error}") from None
    except (TypeError, ValueError, RecursionError):
        # Not the error's text: that may quote a value.
        raise Refused(f"this row of {row.name!r} has no JSON form; give texts, numbers, lists and objects") from None


def _decoded(row_id: str, definition: str | None) -> RowDefinition | None:
    if definition is None:
        return None
    try:
        return decoded_definition(definition)
    except msgspec.DecodeError as error:
        raise LogUnavailable(
            f"a version of tool row {row_id!r} cannot be read by this release ({error}); upgrade it"
        ) from error
