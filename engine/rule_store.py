"""Operators' rules in the journal's database: statements and transactions; every version of every rule is kept.

Each change raises the epoch first, which every commit of every worker reads: changes are ordered, none is missed.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec.structs import replace
from sqlalchemy import ColumnElement, Connection, and_, func, insert, or_, select, update

from engine.epoch import raise_epoch
from engine.rule import EVERYONE, Rule, RuleVersion
from engine.schema import policy_rules
from events.errors import LogUnavailable, NotFound, Refused
from events.keys import new_id
from events.store import Store

__all__ = (
    "insert_rule",
    "read_rules",
    "read_versions",
    "replace_rule",
    "retire_rule",
)

_STEP: Final = 10
_ROW = policy_rules.c


async def read_rules(store: Store, tenants: Sequence[str], now: datetime) -> list[Rule]:
    """Return the rules of some tenant columns that hold.

    :raises LogUnavailable: if the database cannot be read, or holds a rule that this release does not understand
    """
    statement = select(_ROW.id, _ROW.definition).where(_ROW.tenant.in_(tenants), *_holding(now))
    return [_decoded(*row) for row in await store.read(statement)]


async def read_versions(store: Store, tenant: str, rule_id: str) -> list[RuleVersion]:
    """Return every version of a rule, oldest first; none where the tenant has no such rule.

    :raises LogUnavailable: if the database cannot be read, or holds a rule that this release does not understand
    """
    columns = (_ROW.id, _ROW.definition, _ROW.retired_at, _ROW.retired_by)
    statement = select(*columns).where(_ROW.tenant == tenant, _ROW.id == rule_id).order_by(_ROW.version)
    return [
        RuleVersion(rule=_decoded(identity, definition), retired_at=retired_at, retired_by=retired_by)
        for identity, definition, retired_at, retired_by in await store.read(statement)
    ]


def insert_rule(connection: Connection, tenant: str, rule: Rule, now: datetime, by: str | None) -> Rule:
    """Add a rule as its first version, and return it as it is kept. The same once more is that rule.

    :raises Refused: if there is, or was, another one of its id
    """
    raise_epoch(connection)
    _retire(connection, (_ROW.tenant == tenant, _ROW.expires_at <= now), _ROW.expires_at, None)
    if rule.id:
        current = _current(connection, tenant, rule.id)
        if current is not None and _means_the_same(current, rule):
            return current
        if connection.execute(select(_ROW.id).where(_ROW.tenant == tenant, _ROW.id == rule.id)).first():
            raise Refused(f"there is, or was, a rule {rule.id!r}; replace that, or give another id")
    kept = replace(
        rule,
        id=rule.id or new_id(),
        version=1,
        ordinal=_last_ordinal(connection, tenant) + _STEP if rule.ordinal is None else rule.ordinal,
        everyone=tenant == EVERYONE.value,
        created_at=now,
        created_by=by,
    )
    _insert(connection, tenant, kept)
    return kept


def replace_rule(
    connection: Connection, tenant: str, rule: Rule, now: datetime, by: str | None, version: int | None
) -> Rule:
    """Put a new version in the place of the current one of the same id, and return it as it is kept.

    :param version: the version to be replaced; None: whichever it is
    :raises NotFound: if the tenant has no such rule
    :raises Refused: if the rule is at another version
    """
    raise_epoch(connection)
    current = _current(connection, tenant, rule.id)
    if current is None:
        raise NotFound(f"there is no rule {rule.id!r}")
    if version not in (None, current.version):
        raise Refused(f"rule {rule.id!r} is at version {current.version}, not {version}; look at it again")
    kept = replace(
        rule,
        version=current.version + 1,
        ordinal=current.ordinal if rule.ordinal is None else rule.ordinal,
        everyone=current.everyone,
        decision=current.decision,
        created_at=now,
        created_by=by,
    )
    _retire(connection, (_ROW.tenant == tenant, _ROW.id == rule.id), now, by)
    _insert(connection, tenant, kept)
    return kept


def retire_rule(connection: Connection, tenant: str, rule_id: str, now: datetime, by: str | None) -> Rule:
    """Revoke a rule, and return it as it was. :raises NotFound: if the tenant has no such rule"""
    raise_epoch(connection)
    current = _current(connection, tenant, rule_id)
    if current is None:
        raise NotFound(f"there is no rule {rule_id!r}")
    _retire(connection, (_ROW.tenant == tenant, _ROW.id == rule_id), now, by)
    return current


def _holding(now: datetime) -> tuple[ColumnElement[bool], ...]:
    return _ROW.retired_at.is_(None), or_(_ROW.expires_at.is_(None), _ROW.expires_at > now)


def _current(connection: Connection, tenant: str, rule_id: str) -> Rule | None:
    wanted = and_(_ROW.tenant == tenant, _ROW.id == rule_id, _ROW.retired_at.is_(None))
    row = connection.execute(select(_ROW.id, _ROW.definition).where(wanted)).first()
    return None if row is None else _decoded(*row)


def _last_ordinal(connection: Connection, tenant: str) -> int:
    wanted = (_ROW.tenant == tenant, _ROW.retired_at.is_(None), _ROW.decision.is_(None))
    return int(connection.execute(select(func.coalesce(func.max(_ROW.ordinal), 0)).where(*wanted)).scalar_one())


def _retire(connection: Connection, which: tuple[ColumnElement[bool], ...], at: Any, by: str | None) -> None:
    values = {"retired_at": at, "retired_by": by}
    connection.execute(update(policy_rules).where(*which, _ROW.retired_at.is_(None)).values(values))


def _insert(connection: Connection, tenant: str, rule: Rule) -> None:
    values = {
        "tenant": tenant,
        "id": rule.id,
        "version": rule.version,
        "ordinal": rule.ordinal,
        "verdict": rule.verdict,
        "definition": msgspec.json.encode(rule).decode(),
        "expires_at": rule.expires_at,
        "decision": rule.decision,
        "created_at": rule.created_at,
        "created_by": rule.created_by,
    }
    connection.execute(insert(policy_rules).values(values))


def _means_the_same(kept: Rule, rule: Rule) -> bool:
    given = {"version": kept.version, "everyone": kept.everyone, "created_at": kept.created_at}
    by = {"created_by": kept.created_by, "ordinal": kept.ordinal if rule.ordinal is None else rule.ordinal}
    return replace(rule, **given, **by) == kept


def _decoded(rule_id: str, definition: str) -> Rule:
    try:
        return msgspec.json.decode(definition, type=Rule)
    except (msgspec.DecodeError, Refused) as error:
        # Unknown conditions included: without them the rule would speak of more calls than it was written for.
        raise LogUnavailable(
            f"rule {rule_id!r} cannot be read by this release ({error}); upgrade calljournal, or revoke the rule"
        ) from error
