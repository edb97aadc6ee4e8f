"""The rules as calls meet them: kept in memory per tenant, and never older than the call (DESIGN 6, Gate).

Nothing is polled. Every change of a rule raises the epoch, and every commit reads it along: once a call's proposal is
written, the store knows the epoch as of then, and rules kept of another one are read anew. A call for which nothing
was written yet asks for the epoch by a read of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

import msgspec

from engine.policy import NO_POLICY, Policy
from engine.rule import EVERYONE
from events.keys import tenant_column
from events.store import Store

__all__ = ("Rulebook",)

_KEPT: Final = 1024


class _Known(msgspec.Struct, frozen=True):
    epoch: int
    policy: Policy


class Rulebook:
    """What each tenant's calls are decided by: the rules of every tenant, then its own."""

    def __init__(self, store: Store, clock: Callable[[], datetime] | None = None) -> None:
        self._store = store
        self._known: dict[str, _Known] = {}
        self._began: int | None = None
        self.now = clock or _utc_now

    def __repr__(self) -> str:
        return f"<Rulebook of {len(self._known)} tenants at {self._store.epoch}>"

    def known(self, user_id: str | None) -> Policy:
        """Return what was last read of a tenant's rules; it may be old, or nothing."""
        known = self._known.get(tenant_column(user_id))
        return NO_POLICY if known is None else known.policy

    def begin(self, epoch: int) -> None:
        """Note the epoch at the start, for an outage before the first call: at 0, there never were any rules."""
        self._began = epoch

    def last_known(self, user_id: str | None) -> Policy | None:
        """Return a tenant's rules as they were last known to be, without reading; None: they never were known.

        They are not known where they changed after they were last read.
        """
        if self._began is None:
            return None
        epoch = max(self._began, self._store.epoch)
        known = self._known.get(tenant_column(user_id))
        if epoch == 0:
            return NO_POLICY
        return known.policy if known is not None and known.epoch >= epoch else None

    async def as_written(self, user_id: str | None) -> Policy:
        """Return the rules as of the caller's last append, or newer ones; reads only where they have changed.

        :raises LogUnavailable: if they cannot be read
        """
        epoch = self._store.epoch
        return NO_POLICY if epoch == 0 else await self._as_of(epoch, tenant_column(user_id))

    async def fresh(self, user_id: str | None) -> Policy:
        """Return the rules as of now.

        :raises LogUnavailable: if they cannot be read
        """
        if self._store.dialect == "null":
            return NO_POLICY
        from engine.epoch import read_epoch

        return await self._as_of(await read_epoch(self._store), tenant_column(user_id))

    async def _as_of(self, epoch: int, tenant: str) -> Policy:
        if epoch == 0:
            return NO_POLICY
        known = self._known.get(tenant)
        if known is not None and known.epoch == epoch:
            return known.policy
        return await self._read(epoch, tenant)

    async def _read(self, epoch: int, tenant: str) -> Policy:
        from engine.rule_store import read_rules

        rules = await read_rules(self._store, [EVERYONE.value, tenant], self.now())
        # A policy without rules is the same object always: then nothing is to be decided.
        policy = Policy(rules) if rules else NO_POLICY
        while len(self._known) >= _KEPT:
            del self._known[next(iter(self._known))]
        self._known[tenant] = _Known(epoch, policy)
        return policy


def _utc_now() -> datetime:
    return datetime.now(UTC)
