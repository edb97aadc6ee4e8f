"""The epoch: how often rules and tool rows have changed, which every commit of every worker reads along.

Each change raises it first of all. Its row's lock makes changes follow one another, so a reader of one epoch has seen
every change before it.
"""

from __future__ import annotations

from sqlalchemy import Connection, select, update

from engine.schema import policy_epoch
from events.store import Store

__all__ = ("raise_epoch", "read_epoch")


async def read_epoch(store: Store) -> int:
    """Return the epoch at this moment. :raises LogUnavailable: if the database cannot be read"""
    rows = await store.read(select(policy_epoch.c.epoch))
    return int(rows[0][0]) if rows else 0


def raise_epoch(connection: Connection) -> None:
    """Begin a change; it must be the transaction's first statement."""
    connection.execute(update(policy_epoch).values(epoch=policy_epoch.c.epoch + 1))
