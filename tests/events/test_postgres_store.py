"""The Postgres store: what its append function accepts and refuses, and what happens when things go wrong."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import anyio
import pytest
import sqlalchemy as sa
from msgspec.structs import replace

from engine.migration import CHAINS
from events.errors import LogUnavailable, Refused
from events.postgres import PostgresStore, open_postgres
from events.postgres_connection import Address
from events.schema import events, leases, payloads
from events.store import Appended, Outcome, Payload, Refusal, StreamAppend
from events.types import (
    Approved,
    Confirmed,
    Executed,
    Failed,
    LateOutcome,
    Paused,
    Resumed,
)
from projections.attempts import AttemptsProjection
from projections.schema import attempts
from tests.events.appends import append, follow, proposed
from tests.events.postgres_stores import entry, one, opened, positions, row_of, slow_writer
from tests.postgres_server import PASSWORD, PostgresServer

pytestmark = [pytest.mark.postgres, pytest.mark.anyio]


async def test_an_append_is_in_the_log_and_in_the_table(postgres_url: str) -> None:
    first = proposed("c1", arguments={"n": 1}, message_id="m1", user_id="alice", effect="read", idempotent=True)
    async with opened(postgres_url) as store:
        begun = await one(store, append(first))
        done = await one(store, append(follow(Executed, first, result={"n": 2}), follow(Confirmed, first), after=1))
        assert (begun.positions, done.positions) == ((1,), (2, 3))
        assert await store.head() == 3
        rows = await store.read(sa.select(events).order_by(events.c.position))
        assert [(row.stream, row.version, row.type, row.key, row.tenant) for row in rows] == [
            (1, 1, "proposed", "m1:c1", "ualice"),
            (1, 2, "executed", "m1:c1", "ualice"),
            (1, 3, "confirmed", "m1:c1", "ualice"),
        ]
        assert [row.recorded_at for row in rows] == [begun.recorded_at, done.recorded_at, done.recorded_at]
        row = await row_of(store, first)
    assert (row.status, row.gate, row.result, row.arguments) == ("confirmed", "open", '{"n":2}', '{"n":1}')
    assert (row.version, row.position, row.stream) == (3, 3, 1)
    assert (row.proposed_at, row.updated_at) == (begun.recorded_at, done.recorded_at)
    assert (row.effect, row.idempotent, row.late, row.headless) == ("read", True, False, False)


async def test_a_repetition_is_appended_as_it_was_then(postgres_url: str) -> None:
    first = proposed("c1")
    begin, end = append(first), append(follow(Executed, first), after=1)
    async with opened(postgres_url) as store:
        told = [await one(store, begin), await one(store, end)]
        assert [await one(store, begin), await one(store, end)] == told
        assert await positions(store) == [1, 2]
        assert await store.head() == 2


async def test_a_repeatable_event_is_found_by_its_id_whatever_version_is_expected(postgres_url: str) -> None:
    first = proposed("c1")
    late = follow(LateOutcome, first, outcome=follow(Failed, first, kind="timeout", message="m"))
    async with opened(postgres_url) as store:
        await one(store, append(first))
        told = await one(store, append(late, after=1))
        assert await one(store, append(late, after=2)) == told
        assert (await row_of(store, first)).late is True


async def test_a_refusal_says_what_was_found(postgres_url: str) -> None:
    first = proposed("c1", user_id="alice")
    pause = follow(Paused, first, pause_type="requires_input", reason="r")
    async with opened(postgres_url) as store:
        await one(store, append(first))
        await one(store, append(pause, after=1))
        found = Refusal(2, "proposed", "paused", "requires_input", False, False)
        assert await one(store, append(follow(Executed, first), after=2)) == found
        assert await one(store, append(follow(Executed, first), after=1)) == found
        assert await one(store, append(proposed("c1", user_id="alice"))) == found
        assert await positions(store) == [1, 2]


@pytest.mark.parametrize("stranger", ["bob", None, ""])
async def test_another_tenant_learns_nothing(postgres_url: str, stranger: str | None) -> None:
    first = proposed("c1", user_id="alice")
    async with opened(postgres_url) as store:
        await one(store, append(first))
        theirs = proposed("c1", user_id=stranger)
        assert await one(store, append(follow(Executed, theirs), after=1)) == Refusal()
        assert (await one(store, append(theirs))).positions == (2,)
        assert (await store.read(sa.select(sa.func.count()).select_from(attempts)))[0][0] == 2


async def test_one_refused_append_never_fails_its_neighbours(postgres_url: str) -> None:
    calls = [proposed(f"c{number}") for number in range(6)]
    async with opened(postgres_url) as store:
        await store.commit([(append(call),) for call in (*calls[:3], proposed("taken"))])
        await one(store, append(follow(Failed, calls[1], kind="exception", message="m"), after=1))
        outcomes = await store.commit(
            [
                (append(calls[3]),),
                (append(follow(Executed, calls[0]), follow(Confirmed, calls[0]), after=1),),
                (append(follow(Executed, calls[1]), after=2),),
                (append(proposed("taken")),),
                (append(follow(Executed, calls[5]), after=1),),
                (append(calls[4]),),
                (append(follow(Executed, calls[2]), after=1),),
            ]
        )
        verdicts = [entry(outcome) for outcome in outcomes]
        assert [type(verdict) for verdict in verdicts] == [
            Appended,
            Appended,
            Refusal,
            Refusal,
            Refusal,
            Appended,
            Appended,
        ]
        assert [verdict.positions for verdict in verdicts if isinstance(verdict, Appended)] == [
            (6,),
            (7, 8),
            (9,),
            (10,),
        ]
        assert verdicts[2].status == "failed"
        assert verdicts[3].version == 1
        assert verdicts[4] == Refusal()
        assert await positions(store) == list(range(1, 11))


async def test_a_unit_is_written_whole_or_not_at_all(postgres_url: str) -> None:
    calls = [proposed(f"c{number}") for number in range(3)]
    async with opened(postgres_url) as store:
        await store.commit([(append(call),) for call in calls])
        await store.commit([(append(follow(Executed, call), after=1),) for call in calls[:2]])
        confirm = tuple(append(follow(Confirmed, call), after=2) for call in calls[:2])
        spoilt = (*confirm, append(follow(Confirmed, calls[2]), after=1))
        outcome = (await store.commit([spoilt]))[0]
        assert isinstance(outcome, tuple)
        assert [type(part) for part in outcome] == [Appended, Appended, Refusal]
        assert await store.head() == 5
        told = (await store.commit([confirm]))[0]
        assert (await store.commit([confirm]))[0] == told
        assert await positions(store) == [1, 2, 3, 4, 5, 6, 7]
        assert (await row_of(store, calls[0])).status == "confirmed"


async def test_of_two_units_that_begin_the_same_streams_one_wins(postgres_url: str) -> None:
    async with opened(postgres_url) as left, opened(postgres_url) as right:
        for number in range(20):
            rivals = [tuple(append(proposed(f"{number}.{call}")) for call in range(3)) for _ in range(2)]
            outcomes: list[Outcome] = []

            async def commit(store: PostgresStore, unit: tuple[StreamAppend, ...], told: list[Outcome]) -> None:
                told.append((await store.commit([unit]))[0])

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(commit, left, rivals[0], outcomes)
                tasks.start_soon(commit, right, rivals[1][::-1], outcomes)
            kinds = sorted(type(outcome[0]).__name__ for outcome in outcomes if isinstance(outcome, tuple))
            assert kinds == ["Appended", "Refusal"]
        assert len(await positions(left)) == 60


async def test_case_journal_02_what_cannot_be_stored_fails_alone(postgres_url: str) -> None:
    calls = [proposed(f"c{number}") for number in range(5)]
    async with opened(postgres_url) as store:
        await store.commit([(append(call),) for call in calls])
        ends: list[StreamAppend] = [
            append(follow(Failed, call, kind="exception", message=message), after=1)
            for call, message in zip(
                calls, ["fine", "nul \0 inside", r"six characters: \u0000", "surrogate", "ü" * 10], strict=True
            )
        ]
        values = tuple("\ud800" if value == "surrogate" else value for value in ends[3].change.values)
        ends[3] = replace(ends[3], change=replace(ends[3].change, values=values))
        outcomes = await store.commit([(end,) for end in ends])
        assert [type(outcome) for outcome in outcomes] == [tuple, Refused, tuple, Refused, tuple]
        assert "\n" not in str(outcomes[1])
        errors = [(await row_of(store, call)).error for call in calls]
    assert errors == ["fine", None, r"six characters: \u0000", None, "ü" * 10]


async def test_a_key_too_long_for_an_index_fails_alone(postgres_url: str) -> None:
    noise = "".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=9000))
    async with opened(postgres_url) as store:
        outcomes = await store.commit([(append(proposed("fine")),), (append(proposed(noise)),)])
        assert isinstance(outcomes[0], tuple)
        assert isinstance(outcomes[1], Refused)
        assert len(await positions(store)) == 1


async def test_a_row_that_somebody_else_keeps_locked_delays_and_fails_alone(postgres_url: str) -> None:
    calls = [proposed("locked"), proposed("free")]
    async with opened(postgres_url) as store:
        await store.commit([(append(call),) for call in calls])

        async with slow_writer(postgres_url) as foreign:
            await foreign.lock(calls[0])
            with anyio.fail_after(20):
                outcomes = await store.commit([(append(follow(Executed, call), after=1),) for call in calls])
        assert isinstance(outcomes[0], LogUnavailable)
        assert "locked" in str(outcomes[0])
        assert isinstance(entry(outcomes[1]), Appended)
        assert isinstance(await one(store, append(follow(Executed, calls[0]), after=1)), Appended)


async def test_a_takeover_needs_the_other_workers_lease_to_be_over(postgres_url: str) -> None:
    now = datetime.now(UTC)
    first = proposed("c1", worker="other", idempotent=True)
    claim = follow(Resumed, first, worker="me", takeover=True)
    async with opened(postgres_url) as store:
        await store.write(
            [sa.insert(leases).values(worker="other", started_at=now, expires_at=now + timedelta(hours=1))]
        )
        await one(store, append(first))
        await one(store, append(follow(Paused, first, pause_type="awaiting_approval", reason="r"), after=1))
        await one(store, append(follow(Approved, first, by="b", digest="d", fingerprint="f"), after=2))
        await one(store, append(follow(Resumed, first, worker="other"), after=3))
        takeover = append(claim, after=4, dead_worker="other")
        refused = await one(store, takeover)
        assert (refused.lease_alive, refused.gate) == (True, "claimed")
        await store.write([sa.update(leases).values(expires_at=now)])
        assert isinstance(await one(store, takeover), Appended)
        row = await row_of(store, first)
        assert (row.worker, row.gate) == ("me", "claimed")
        assert isinstance(await one(store, append(claim, after=5, dead_worker="other")), Appended)
        assert (await store.head()) == 5


async def test_long_results_are_stored_once_per_tenant(postgres_url: str) -> None:
    content = Payload("d" * 64, 5, "whole")
    calls = [proposed("c1", user_id="a"), proposed("c2", user_id="a"), proposed("c3", user_id="b")]
    async with opened(postgres_url) as store:
        await store.commit([(append(call),) for call in calls])
        ends = [append(follow(Executed, call), after=1) for call in calls]
        ends = [replace(end, payloads=(content,)) for end in ends]
        refused = append(follow(Confirmed, calls[0]), after=7)
        other = Payload("e" * 64, 4, "none")
        ends.append(replace(refused, key="x", payloads=(other,)))
        await store.commit([(end,) for end in ends])
        rows = await store.read(sa.select(payloads.c.tenant, payloads.c.content).order_by(payloads.c.tenant))
    assert [tuple(row) for row in rows] == [("ua", "whole"), ("ub", "whole")]


async def test_commits_wait_for_the_disk_whatever_the_database_says(
    postgres: PostgresServer, postgres_url: str
) -> None:
    name = postgres_url.rpartition("/")[2]
    postgres.execute(f'ALTER DATABASE "{name}" SET synchronous_commit = off')
    postgres.execute(f"ALTER DATABASE \"{name}\" SET default_transaction_isolation = 'serializable'")
    async with opened(postgres_url) as store:
        durability = await store.durability()
        assert (durability.fsync, durability.synchronous_commit) == ("on", "on")


async def test_statements_of_one_transaction_are_written_together(postgres_url: str) -> None:
    lease = sa.insert(leases).values(worker="w", started_at=datetime.now(UTC), expires_at=datetime.now(UTC))
    async with opened(postgres_url) as store:
        with pytest.raises(Refused, match="duplicate key"):
            await store.write([lease, lease])
        assert await store.read(sa.select(leases.c.worker)) == []
        assert await store.write([lease, sa.update(leases).values(started_at=datetime.now(UTC))]) == [1, 1]

        def fail(connection: sa.Connection) -> None:
            connection.execute(sa.delete(leases))
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await store.transact(fail)
        assert len(await store.read(sa.select(leases.c.worker))) == 1


async def test_a_batch_of_very_long_results_is_cut_into_statements(postgres_url: str) -> None:
    calls = [proposed(f"c{number}") for number in range(3)]
    async with opened(postgres_url) as store:
        await store.commit([(append(call),) for call in calls])
        long = Payload("d" * 64, 20_000_000, "x" * 20_000_000)
        ends = [replace(append(follow(Executed, call), after=1), payloads=(long,)) for call in calls]
        verdicts = [entry(outcome) for outcome in await store.commit([(end,) for end in ends])]
        assert [verdict.positions for verdict in verdicts] == [(4,), (5,), (6,)]
        assert len({verdict.recorded_at for verdict in verdicts}) == 3


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("postgresql://me:pw@db.example/journal", "Postgres at db.example:5432, database 'journal'"),
        ("postgresql://me:pw@one:1,two:2/journal", "Postgres at one:1,two:2, database 'journal'"),
        ("postgresql:///journal?host=/run/pg&pooled=1", "Postgres at /run/pg:5432, database 'journal', pooled"),
        ("postgresql://[::1]/journal?sslmode=require&pooled=0", "Postgres at [::1]:5432, database 'journal'"),
    ],
)
def test_an_address_names_the_place_and_never_the_password(url: str, place: str) -> None:
    address = Address.of(url)
    assert repr(address) == f"<{place}>"
    assert "pooled" not in address.dsn


async def test_a_missing_database_or_user_is_one_clear_line(postgres: PostgresServer) -> None:
    with pytest.raises(LogUnavailable, match="there is no such database; create it") as error:
        await open_postgres(postgres.url("nowhere"), AttemptsProjection(), CHAINS)
    assert PASSWORD not in str(error.value)
    with pytest.raises(Refused, match="not a Postgres URL"):
        await open_postgres("postgresql://[::1/x", AttemptsProjection(), CHAINS)
