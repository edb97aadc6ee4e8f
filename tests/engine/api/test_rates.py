"""An action's rate: held by all workers together, whoever calls; over it nothing is sent."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from sqlalchemy import func, select, update

from engine import CallContext, Engine, Settings, ToolRow
from engine.api.row_config import problems_of
from engine.contract import Scope
from engine.pacing import kept_pace
from engine.pacing.kept_pace import Place, kept_turn
from engine.pacing.rate import SECOND, Rate, TooSoon
from engine.pacing.turns import turns
from engine.schema import tool_rates
from engine.services import Services
from engine.tools.api_tool import ApiTool
from events import Executed, Failed
from events.errors import LogUnavailable
from tests.engine.api.calls import LOCAL
from tests.engine.api.raw_server import RawServer, answer, raw_server
from tests.engine.staging import CONTEXT, call, events_of, outcome_of, staged_engine

__all__ = ()

pytestmark = pytest.mark.anyio

SETTINGS = Settings(net=LOCAL)
PLACE = Place("u", "t1", "act")
HOUR = {"calls": 2, "seconds": 3600}


def paced_row(server: RawServer, rate: dict[str, Any], **more: Any) -> ToolRow:
    """Return a row whose two actions have the same rate, each for itself."""
    action = {"url": server.origin, "rate": rate, **more}
    return ToolRow(id="t1", name="api_tool", user_id="u", config={"actions": {"act": action, "other": action}})


def said(outcome: object) -> str:
    """Return a call's message."""
    assert isinstance(outcome, Executed)
    message: str = outcome.result["message"]
    return message


async def test_a_bucket_is_emptied_by_all_and_filled_evenly(journal_url: str) -> None:
    passed: list[float] = []
    refused: list[float] = []
    rate = Rate(calls=3, seconds=600)

    async def take(engine: Engine) -> None:
        try:
            await kept_turn(engine.log.store, PLACE, rate, 60)
            passed.append(0)
        except TooSoon as error:
            refused.append(error.seconds)

    async with Engine.open(journal_url) as one, Engine.open(journal_url) as two, anyio.create_task_group() as group:
        for number in range(10):
            group.start_soon(take, (one, two)[number % 2])
        # Its own bucket, for whatever is another row, action, or owner.
        for other in (Place("v", "t1", "act"), Place("u", "t2", "act"), Place("u", "t1", "bct")):
            await kept_turn(one.log.store, other, rate, 60)
    assert len(passed) == 3
    assert len(refused) == 7
    assert all(190 < seconds <= 200 for seconds in refused)


async def test_who_comes_first_waits_first_and_nobody_waits_too_long(journal_url: str) -> None:
    rate = Rate(calls=5, seconds=1, burst=1)
    async with Engine.open(journal_url) as one, Engine.open(journal_url) as two:
        began = anyio.current_time()
        for engine in (one, two, one):
            await kept_turn(engine.log.store, PLACE, rate, 5)
        assert 0.4 <= anyio.current_time() - began < 3
        await kept_turn(one.log.store, PLACE, rate, 5)
        with pytest.raises(TooSoon):
            await kept_turn(two.log.store, PLACE, rate, 0)


async def test_what_another_rate_left_is_no_debt(journal_url: str) -> None:
    async with Engine.open(journal_url) as engine:
        await kept_turn(engine.log.store, PLACE, Rate(calls=1, seconds=86_400), 0)
        with pytest.raises(TooSoon):
            await kept_turn(engine.log.store, PLACE, Rate(calls=1, seconds=86_400), 0)
        for _ in range(2):
            await kept_turn(engine.log.store, PLACE, Rate(calls=2, seconds=30), 0)
        with pytest.raises(TooSoon):
            await kept_turn(engine.log.store, PLACE, Rate(calls=2, seconds=30), 0)


@pytest.mark.postgres
async def test_a_worker_that_stands_still_in_its_turn_does_not_hold_up_the_others(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_pace, "PATIENCE", 0.2)
    async with Engine.open(postgres_url) as one, Engine.open(postgres_url) as two:
        await kept_turn(one.log.store, PLACE, Rate(calls=5, seconds=60), 0)
        is_held, is_over = threading.Event(), threading.Event()

        def stand_still(connection: Any) -> None:
            connection.execute(update(tool_rates).values(due_at=0))
            is_held.set()
            connection.execute(select(func.pg_sleep(3)))
            is_over.set()

        async with anyio.create_task_group() as group:
            group.start_soon(two.log.store.transact, stand_still)
            while not is_held.is_set():
                await anyio.lowlevel.checkpoint()
            with pytest.raises(LogUnavailable):
                await kept_turn(one.log.store, PLACE, Rate(calls=5, seconds=60), 0)
            assert not is_over.is_set()


def test_the_arithmetic_of_a_bucket() -> None:
    rate, now = Rate(calls=4, seconds=2), 10 * SECOND
    due: int | None = 0
    for _ in range(4):
        assert due is not None
        due = rate.taken(due, now)
    assert due == now + rate.capacity == now + 2 * SECOND
    assert rate.taken(due, now) is None
    assert rate.lack(due, now) == SECOND // 2
    assert rate.taken(due, now, SECOND // 2) == due + SECOND // 2
    assert rate.wait(due + SECOND // 2, now) == SECOND // 2
    assert rate.wait(due, now) == 0
    assert rate.taken(due, now + SECOND // 2) is not None
    assert str(Rate(calls=1, seconds=0.5)) == "1 call per 0.5 s"


@pytest.mark.parametrize("url", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres), "null"])
async def test_over_its_rate_an_action_sends_nothing(url: str, request: pytest.FixtureRequest) -> None:
    journal = "null://" if url == "null" else str(request.getfixturevalue(f"{url}_url"))
    with raw_server() as server:
        async with staged_engine(journal, ApiTool, rows=[paced_row(server, HOUR)], settings=SETTINGS) as one:
            messages = [said(await outcome_of(one, call({}, name="act", call_id=f"c{n}"))) for n in range(3)]
            assert messages[:2] == ["API call successful."] * 2
            assert messages[2] in (
                "Rate limit: the action takes 2 calls per 3600 s; try again in 1800 s. Nothing was sent.",
                "Rate limit: the action takes 2 calls per 3600 s; try again in 1799 s. Nothing was sent.",
            )
            assert said(await outcome_of(one, call({}, name="other", call_id="d"))) == "API call successful."
            if url != "null":
                vouched = CallContext(user_id="w", message_id="m", agent_id="a", tool_ids=("t1",))
                rows = [paced_row(server, HOUR)]
                async with staged_engine(journal, ApiTool, rows=rows, settings=SETTINGS) as two:
                    refused = await outcome_of(two, call({}, name="act"), vouched)
                    assert said(refused).startswith("Rate limit:")
                    assert isinstance(refused, Executed)
                    assert refused.status == "error"
            assert len(server.received) == 3


async def test_a_call_that_is_cancelled_or_has_no_time_while_it_waits_sends_nothing(sqlite_url: str) -> None:
    slow = {"calls": 1, "seconds": 4}
    with raw_server() as server:
        rows = [paced_row(server, slow, timeout=2)]
        async with staged_engine(sqlite_url, ApiTool, rows=rows, settings=SETTINGS) as engine:
            assert said(await outcome_of(engine, call({}, name="act"))) == "API call successful."
            assert "try again in 4 s" in said(await outcome_of(engine, call({}, name="act", call_id="c2")))
        rows = [paced_row(server, slow)]
        async with staged_engine(sqlite_url, ApiTool, rows=rows, settings=SETTINGS) as engine:
            with anyio.move_on_after(0.3) as scope:
                await events_of(engine, call({}, name="act", call_id="c3"))
            assert scope.cancelled_caught
            _, failed = await events_of(engine, call({}, name="act", call_id="c3"), CONTEXT)
            assert isinstance(failed, Failed)
            assert failed.kind == "cancelled"
        assert len(server.received) == 1


async def test_each_attempt_takes_a_turn(sqlite_url: str) -> None:
    with raw_server() as server:
        server.answers = [answer(b"{}", 503, Retry_After="0"), answer(b"{}")]
        rate = {"calls": 1, "seconds": 3600}
        async with staged_engine(sqlite_url, ApiTool, rows=[paced_row(server, rate)], settings=SETTINGS) as engine:
            assert said(await outcome_of(engine, call({}, name="act"))).startswith("HTTP Error 503")
        assert len(server.received) == 1


class Away:
    """A database that is not there."""

    dialect = "sqlite"

    async def transact(self, work: Callable[[Any], Any]) -> Any:
        raise LogUnavailable("away")


async def test_while_the_database_is_away_a_process_keeps_to_the_rate_by_itself() -> None:
    services = Services(store=Away())
    scope = Scope(user_id="u", owner="u", tool_id="t1", services=services)
    rate = Rate(calls=1, seconds=600)
    await services.shared(turns).turn(scope, "act", rate, 60)
    with pytest.raises(TooSoon):
        await services.shared(turns).turn(scope, "act", rate, 60)
    await services.shared(turns).turn(scope, "bct", rate, 60)
    for _ in range(2):
        await services.shared(turns).turn(scope, "act", Rate(calls=2, seconds=30), 0)
    with pytest.raises(TooSoon):
        await services.shared(turns).turn(scope, "act", Rate(calls=2, seconds=30), 0)


def test_a_rate_that_makes_no_sense_is_not_stored() -> None:
    for rate, reason in (
        ({"calls": 0, "seconds": 1}, "rate.calls"),
        ({"calls": 1.5, "seconds": 1}, "rate.calls"),
        ({"calls": 1, "seconds": 0}, "rate.seconds"),
        ({"calls": 1}, "seconds"),
        ({"calls": 1, "seconds": 1, "burst": 0}, "rate.burst"),
        ({"calls": 1, "second": 1, "seconds": 1}, "second"),
        ("1/s", "rate"),
    ):
        action = {"url": "https://api.example/", "rate": rate}
        [problem] = problems_of({"actions": {"act": action}})
        assert problem.startswith('"act": The action\'s configuration is not valid')
        assert reason in problem
    fine = {"url": "https://api.example/", "rate": {"calls": 1, "seconds": 0.5, "burst": 3}}
    assert problems_of({"actions": {"act": fine}}) == []
