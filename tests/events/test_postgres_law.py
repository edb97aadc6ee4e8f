"""The append function holds the same law as the pure fold."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest

from events.errors import TransitionRejected
from events.store import Appended, Refusal
from events.transitions import Attempt, advance
from events.types import Approved, Confirmed, Denied, Executed, Failed, LateOutcome, Paused, Resumed
from projections.attempts import INSERT_COLUMNS
from tests.events.appends import append, follow, proposed
from tests.events.postgres_stores import entry, one, opened, row_of
from tests.postgres_server import PostgresServer

pytestmark = [pytest.mark.postgres, pytest.mark.anyio]

STEPS: list[Any] = [
    lambda first: follow(Paused, first, pause_type="awaiting_approval", reason="r", expires_at=datetime.now(UTC)),
    lambda first: follow(Paused, first, pause_type="requires_client_execution", reason="r"),
    lambda first: follow(Paused, first, pause_type="requires_input", reason="r", rule="p"),
    lambda first: follow(Approved, first, by="b", digest="d", fingerprint="f"),
    lambda first: follow(Approved, first, by="b", digest="d", fingerprint="f", arguments={"edited": True}),
    lambda first: follow(Resumed, first, worker="w2"),
    lambda first: follow(Resumed, first, worker="w2", takeover=True),
    lambda first: follow(Resumed, first, worker="w2", answer={"a": 1}),
    lambda first: follow(Denied, first, reason="headless", message="m"),
    lambda first: follow(Denied, first, reason="rejected", message="m"),
    lambda first: follow(Denied, first, reason="expired", message="m"),
    lambda first: follow(Denied, first, reason="policy", message="m", rule="p"),
    lambda first: follow(Executed, first, result="r", artifact_id="a"),
    lambda first: follow(Failed, first, kind="exception", message="m"),
    lambda first: follow(Confirmed, first),
    lambda first: follow(LateOutcome, first, outcome=follow(Failed, first, kind="timeout", message="m")),
]


@pytest.mark.parametrize("seed", range(3))
async def test_the_function_judges_as_the_law_does(postgres_url: str, seed: int) -> None:
    """Random walks: each step is accepted exactly where the pure fold accepts it, and the row is the fold."""
    choices = random.Random(seed)
    calls = [proposed(f"c{number}", idempotent=bool(number % 2)) for number in range(40)]
    folds: list[Attempt] = [advance(None, call) for call in calls]
    async with opened(postgres_url) as store:
        await store.commit([(append(call),) for call in calls])
        for _ in range(12):
            steps = [choices.choice(STEPS)(call) for call in calls]
            batch = [(append(step, after=fold.version),) for step, fold in zip(steps, folds, strict=True)]
            for number, outcome in enumerate(await store.commit(batch)):
                before = folds[number]
                try:
                    folds[number] = advance(before, steps[number])
                except TransitionRejected:
                    found = Refusal(before.version, before.status, before.gate, before.pause_type, before.late)
                    assert entry(outcome) == found, (before, steps[number])
                else:
                    assert isinstance(entry(outcome), Appended), (before, steps[number])
        for call, fold in zip(calls, folds, strict=True):
            row = await row_of(store, call)
            assert fold == Attempt(
                status=row.status,
                gate=row.gate,
                pause_type=row.pause_type,
                late=row.late,
                idempotent=row.idempotent,
                version=row.version,
            )


async def test_a_new_gate_sets_what_goes_with_it_and_everything_else_stays(postgres_url: str) -> None:
    first = proposed("c1", arguments={"a": 1})
    deadline = datetime(2027, 1, 1, tzinfo=UTC)
    async with opened(postgres_url) as store:
        await one(store, append(first))
        pause = follow(
            Paused,
            first,
            pause_type="awaiting_approval",
            reason="r",
            rule="p",
            expires_at=deadline,
            new_fingerprint="g",
        )
        await one(store, append(pause, after=1))
        row = await row_of(store, first)
        assert (row.pause_type, row.expires_at, row.rule, row.fingerprint) == ("awaiting_approval", deadline, "p", "g")
        edited = follow(Approved, first, by="b", digest="d", fingerprint="f", arguments={"a": 2})
        await one(store, append(edited, after=2))
        row = await row_of(store, first)
        assert (row.gate, row.pause_type, row.expires_at) == ("approved", None, None)
        assert (row.rule, row.fingerprint, row.arguments) == ("p", "g", '{"a":2}')


def function_columns(postgres: PostgresServer, url: str) -> list[str]:
    async def ask(url: str) -> list[str]:
        connection = await asyncpg.connect(url)
        names: list[str] = await connection.fetchval(
            "SELECT proargnames FROM pg_proc WHERE proname = 'calljournal_append_1'"
        )
        await connection.close()
        return names

    return [name.removeprefix("a_") for name in postgres.run(ask, url) if name.startswith("a_")]


def test_the_function_takes_the_columns_in_the_projections_order(postgres: PostgresServer, postgres_url: str) -> None:
    assert tuple(function_columns(postgres, postgres_url)) == INSERT_COLUMNS
