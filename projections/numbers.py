"""``tool_call_streams`` beside the log and the rows: whether each call has its number, and no other call has it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Select, and_, case, func, literal, select, tuple_

from events.keys import tenant_of
from events.schema import events, streams
from events.store import Store
from projections.report import Problem
from projections.schema import attempts

__all__ = ("Numbers", "check_numbers", "misnumbered")

_PAGE = 50_000
_NAMED = 1000
_NAME = tuple_(streams.c.tenant, streams.c.key)
_BEGINS = and_(
    events.c.position == streams.c.stream,
    events.c.version == 1,
    events.c.tenant == streams.c.tenant,
    events.c.key == streams.c.key,
)


class Numbers(msgspec.Struct, frozen=True):
    """What was found: how many entries begin a stream, and those that begin none."""

    begun: int
    problems: tuple[Problem, ...]


async def check_numbers(store: Store, head: int) -> Numbers:
    """Look up the first event of every entry, some at a time; those numbered up to ``head`` are counted.

    :raises LogUnavailable: if the database cannot be read
    """
    begun = 0
    problems: list[Problem] = []
    after: tuple[str, str] | None = None
    while True:
        end = await store.read(_names(after).limit(1).offset(_PAGE))
        upto = (end[0][0], end[0][1]) if end else None
        counted, empty = (await store.read(_counts(head, _part(after, upto))))[0]
        begun += counted or 0
        if empty:
            unbegun = select(streams.c.tenant, streams.c.key).join(events, _BEGINS, isouter=True)
            where = and_(events.c.position.is_(None), *_part(after, upto))
            rows = await store.read(unbegun.where(where).order_by(streams.c.tenant, streams.c.key).limit(_NAMED))
            problems += [_empty(row) for row in rows]
        if upto is None:
            return Numbers(begun, tuple(problems))
        after = upto


def _names(after: tuple[str, str] | None) -> Select[Any]:
    statement = select(streams.c.tenant, streams.c.key).order_by(streams.c.tenant, streams.c.key)
    return statement.where(*_part(after, None))


def _part(after: tuple[str, str] | None, upto: tuple[str, str] | None) -> list[ColumnElement[bool]]:
    bounds: list[ColumnElement[bool]] = []
    if after is not None:
        bounds.append(tuple_(literal(after[0]), literal(after[1])) < _NAME)
    if upto is not None:
        bounds.append(tuple_(literal(upto[0]), literal(upto[1])) >= _NAME)
    return bounds


def _counts(head: int, part: Sequence[ColumnElement[bool]]) -> Select[Any]:
    known = and_(events.c.position.is_not(None), streams.c.stream <= head)
    found = func.sum(case((known, 1), else_=0))
    empty = func.sum(case((events.c.position.is_(None), 1), else_=0))
    return select(found, empty).select_from(streams).join(events, _BEGINS, isouter=True).where(*part)


def _empty(row: Sequence[Any]) -> Problem:
    message = "it is listed in tool_call_streams, but has no first event"
    return Problem(kind="stream", message=message, key=row[1], user_id=tenant_of(row[0]))


async def misnumbered(store: Store) -> AsyncGenerator[list[Problem], None]:
    """Yield the rows of ``tool_call_attempts`` whose number is not that of their call's entry, some at a time.

    :raises LogUnavailable: if the database cannot be read
    """
    named = and_(streams.c.tenant == attempts.c.tenant, streams.c.key == attempts.c.key)
    columns = (attempts.c.stream, attempts.c.tenant, attempts.c.key, streams.c.stream)
    unlike = select(*columns).join_from(attempts, streams, named, isouter=True)
    unlike = unlike.where(streams.c.stream.is_distinct_from(attempts.c.stream)).order_by(attempts.c.stream)
    after = -(2**62)
    while rows := await store.read(unlike.where(attempts.c.stream > after).limit(_NAMED)):
        yield [_misnumbered(row) for row in rows]
        after = rows[-1][0]


def _misnumbered(row: Sequence[Any]) -> Problem:
    stream, tenant, key, number = row
    message = f"its row says stream {stream}, tool_call_streams says {'none' if number is None else number}"
    return Problem(kind="stream", message=message, key=key, user_id=tenant_of(tenant))
