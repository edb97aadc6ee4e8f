"""``engine.rules``: the rules an operator keeps, listed, added, replaced and revoked, for one tenant or for all."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeAlias

from msgspec.structs import replace

from engine.policy import Policy
from engine.rule import EVERYONE, Everyone, Rule, RuleVersion
from events.errors import Refused
from events.keys import require_storable, tenant_column
from events.persistence import run_to_end
from events.store import Store

__all__ = ("Rules", "Whose")


Whose: TypeAlias = str | Everyone | None


class Rules:
    """The rules in one journal. A change holds for the next call of every worker, and for no call that has begun.

    Each change is a new version; none is ever lost. A change completes though its caller is cancelled meanwhile.
    """

    def __init__(self, store: Store, clock: Callable[[], datetime] | None = None) -> None:
        self._store = store
        self._clock = clock or _utc_now

    def __repr__(self) -> str:
        return f"<Rules of {self._store!r}>"

    async def versions(self, rule_id: str, *, user_id: Whose) -> list[RuleVersion]:
        """Return every version of a rule, oldest first, so that what an event names can be looked up for ever.

        :raises LogUnavailable: if they cannot be read
        """
        from engine.rule_store import read_versions

        return await read_versions(self._store, _column(user_id), rule_id)

    async def list(self, *, user_id: Whose) -> list[Rule]:
        """Return a tenant's own rules that hold now, in their order, those that decisions made last.

        :param user_id: ``EVERYONE``: the rules of every tenant
        :raises LogUnavailable: if they cannot be read
        """
        from engine.rule_store import read_rules

        rules = await read_rules(self._store, [_column(user_id)], self._clock())
        return sorted(rules, key=lambda rule: (rule.decision is not None, rule.ordinal or 0, rule.id))

    async def add(self, rule: Rule, *, user_id: Whose, by: str | None = None) -> Rule:
        """Add a rule, and return it with its id, version and place. Adding the same rule, by id, again changes nothing.

        :param by: who adds it
        :raises Refused: if it cannot be used, or its id is taken
        :raises LogUnavailable: if it was not written, or that is not known: then add it again, under an id of its own
        """
        from engine.rule_store import insert_rule

        _require_usable(rule, user_id, by, self._clock())
        return await self._change(insert_rule, user_id, replace(rule, version=0), by)

    async def replace(
        self, rule_id: str, rule: Rule, *, user_id: Whose, by: str | None = None, version: int | None = None
    ) -> Rule:
        """Replace a rule by its next version, and return that. Its place stays unless the new one gives another.

        :param version: the version to be replaced; None: whichever it is
        :raises NotFound: if the tenant has no such rule
        :raises Refused: if the new one cannot be used, or the rule is at another version
        :raises LogUnavailable: if it was not written, or that is not known
        """
        from engine.rule_store import replace_rule

        _require_usable(rule, user_id, by, self._clock())
        return await self._change(replace_rule, user_id, replace(rule, id=rule_id, version=0), by, version)

    async def revoke(self, rule_id: str, *, user_id: Whose, by: str | None = None) -> Rule:
        """End a rule, and return it as it was.

        :raises NotFound: if the tenant has no such rule
        :raises LogUnavailable: if that was not written, or is not known
        """
        from engine.rule_store import retire_rule

        require_storable(by, "the name of who revokes it")
        return await self._change(retire_rule, user_id, rule_id, by)

    async def _change(self, work: Callable[..., Rule], user_id: Whose, what: Any, by: str | None, *more: Any) -> Rule:
        tenant, now = _column(user_id), self._clock()

        def run(connection: Any) -> Rule:
            return work(connection, tenant, what, now, by, *more)

        return await run_to_end(partial(self._store.transact, run))


def _utc_now() -> datetime:
    return datetime.now(UTC)


def _column(user_id: Whose) -> str:
    if isinstance(user_id, Everyone):
        return EVERYONE.value
    require_storable(user_id, "the user id")
    return tenant_column(user_id)


def _require_usable(rule: Rule, user_id: Whose, by: str | None, now: datetime) -> None:
    require_storable(by, "the name of who makes the rule")
    Policy([rule])
    if rule.decision is not None:
        raise Refused("a rule with a decision is made by decide(…, remember=…); leave decision out")
    if rule.tenant is not None and user_id is not EVERYONE:
        raise Refused("tenant belongs to rules of every tenant (user_id=EVERYONE); leave it out")
    if rule.expires_at is not None and rule.expires_at <= now:
        raise Refused("the rule would have expired already; give a later expires_at")
