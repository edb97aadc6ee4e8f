"""Rules in the journal: kept, versioned, of one tenant or of all, and known to every worker at its next call."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from sqlalchemy import update

from engine import EVERYONE, CallContext, Engine, Rule, ToolRow
from engine.rulebook import Rulebook
from engine.rules import Rules
from engine.schema import policy_rules
from events import Denied, Executed, LogUnavailable, NotFound, Paused, Refused
from tests.engine.gating import APPROVED_FIRST
from tests.engine.staging import (
    call,
    events_of,
    outcome_of,
    proved,
    staged,
    staged_engine,
    stream_of,
    tool_of,
)

__all__ = ()

pytestmark = pytest.mark.anyio

DENY = Rule(verdict="deny", id="no", action="bump", message="not on Fridays")


async def answer(**kwargs: Any) -> str:
    return "ran"


async def never(**kwargs: Any) -> str:
    raise AssertionError(f"it was run with {kwargs}")


class Clock:
    """Stands until it is set."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


async def test_rules_are_added_listed_replaced_and_revoked(journal_url: str) -> None:
    async with Engine.open(journal_url) as engine:
        rules = engine.rules
        first = await rules.add(DENY, user_id="u", by="alice")
        second = await rules.add(Rule(verdict="ask", tool="web*", predicate="url"), user_id="u")
        assert (first.id, first.version, first.everyone, first.created_by) == ("no", 1, False, "alice")
        assert second.id
        assert (first.ordinal, second.ordinal) == (10, 20)
        assert await rules.list(user_id="u") == [first, second]
        changed = await rules.replace("no", Rule(verdict="ask", action="bump"), user_id="u", by="bob", version=1)
        assert (changed.id, changed.version, changed.ordinal, changed.created_by) == ("no", 2, 10, "bob")
        with pytest.raises(Refused, match="is at version 2, not 1"):
            await rules.replace("no", DENY, user_id="u", version=1)
        assert await rules.revoke("no", user_id="u", by="carol") == changed
        with pytest.raises(NotFound):
            await rules.revoke("no", user_id="u")
        with pytest.raises(NotFound):
            await rules.replace("no", DENY, user_id="u")
        assert await rules.list(user_id="u") == [second]
        past = await rules.versions("no", user_id="u")
        assert [(entry.rule, entry.retired_by) for entry in past] == [(first, "bob"), (changed, "carol")]
        assert None not in [entry.retired_at for entry in past]


async def test_adding_the_same_rule_again_changes_nothing_and_another_of_its_id_is_refused(journal_url: str) -> None:
    async with Engine.open(journal_url) as engine:
        rule = await engine.rules.add(DENY, user_id=None)
        assert await engine.rules.add(DENY, user_id=None) == rule
        with pytest.raises(Refused, match="'no'"):
            await engine.rules.add(Rule(verdict="allow", id="no"), user_id=None)
        await engine.rules.revoke("no", user_id=None)
        with pytest.raises(Refused, match="'no'"):
            await engine.rules.add(DENY, user_id=None)
        assert await engine.rules.list(user_id=None) == []


async def test_no_tenant_sees_or_moves_anothers_rules(journal_url: str) -> None:
    async with Engine.open(journal_url) as engine:
        whose = ("u", "v", "", "*", "u*", None, EVERYONE)
        kept = {user_id: await engine.rules.add(DENY, user_id=user_id) for user_id in whose}
        for user_id in whose:
            assert await engine.rules.list(user_id=user_id) == [kept[user_id]]
        with pytest.raises(NotFound):
            await engine.rules.revoke("no", user_id="w")
        assert await engine.rules.versions("no", user_id="w") == []
        await engine.rules.revoke("no", user_id=EVERYONE)
        assert [len(await engine.rules.list(user_id=user_id)) for user_id in whose] == [1] * 6 + [0]
    assert kept[EVERYONE].everyone
    assert not kept["*"].everyone


async def test_only_its_own_tenants_calls_meet_a_rule(journal_url: str) -> None:
    row = ToolRow(id="t1", name="counter")
    async with staged_engine(journal_url, tool_of(answer), rows=[row]) as engine:
        await engine.rules.add(DENY, user_id="u")
        await engine.rules.add(Rule(verdict="deny", tenant="guest-*"), user_id=EVERYONE)
        for user_id, kind in (("u", Denied), ("v", Executed), (None, Executed), ("*", Executed), ("guest-7", Denied)):
            event = await outcome_of(engine, call(), CallContext(user_id=user_id, message_id="m"))
            assert isinstance(event, kind), user_id
        await proved(engine)


@asynccontextmanager
async def two_engines(url: str, runs: Any = answer, **facts: Any) -> AsyncIterator[tuple[Engine, Engine]]:
    async with staged(url, runs, **facts) as first, staged(url, runs, **facts) as second:
        yield first, second


async def test_a_change_holds_at_the_next_call_of_another_worker(journal_url: str) -> None:
    async with two_engines(journal_url) as (here, there):
        for round_ in range(3):
            assert isinstance(await outcome_of(there, call(call_id=f"a{round_}")), Executed)
            rule = await here.rules.add(Rule(verdict="deny"), user_id="u")
            assert isinstance(await outcome_of(there, call(call_id=f"b{round_}")), Denied)
            await here.rules.replace(rule.id, Rule(verdict="ask"), user_id="u")
            assert isinstance(await outcome_of(there, call(call_id=f"c{round_}")), Paused)
            await here.rules.revoke(rule.id, user_id="u")
            assert isinstance(await outcome_of(there, call(call_id=f"d{round_}")), Executed)
        await proved(there)


async def test_an_allowance_made_or_ended_elsewhere_holds_at_the_next_call(journal_url: str) -> None:
    async with two_engines(journal_url, metadata=APPROVED_FIRST) as (here, there):
        for round_ in range(3):
            assert isinstance(await outcome_of(there, call(call_id=f"a{round_}")), Paused)
            rule = await here.rules.add(Rule(verdict="allow"), user_id="u")
            assert isinstance(await outcome_of(there, call(call_id=f"b{round_}")), Executed)
            await here.rules.revoke(rule.id, user_id="u")
            assert isinstance(await outcome_of(there, call(call_id=f"c{round_}")), Paused)
        await proved(there)


async def test_rules_expire_by_the_clock(journal_url: str) -> None:
    clock = Clock()
    async with Engine.open(journal_url) as engine:
        rules, book = Rules(engine.log.store, clock), Rulebook(engine.log.store, clock)
        with pytest.raises(Refused, match="expired"):
            await rules.add(Rule(verdict="deny", expires_at=clock.now), user_id="u")
        until = clock.now + timedelta(hours=1)
        rule = await rules.add(Rule(verdict="deny", expires_at=until), user_id="u")
        assert await book.fresh("u")
        assert await rules.list(user_id="u") == [rule]
        clock.now = until
        assert await rules.list(user_id="u") == []
        await rules.add(Rule(verdict="ask"), user_id="u")
        (version,) = await rules.versions(rule.id, user_id="u")
        assert version.retired_at == until


async def test_a_rule_that_has_expired_since_it_was_read_decides_nothing(journal_url: str) -> None:
    async with staged(journal_url, answer) as engine:
        clock = Clock()
        clock.now = datetime.now(UTC)
        engine._runtime.rulebook.now = clock
        await engine.rules.add(Rule(verdict="deny", expires_at=clock.now + timedelta(hours=1)), user_id="u")
        assert isinstance(await outcome_of(engine, call()), Denied)
        clock.now += timedelta(hours=1)
        assert isinstance(await outcome_of(engine, call(call_id="c2")), Executed)


async def test_a_rule_of_a_newer_release_stops_calls_rather_than_be_misread(journal_url: str) -> None:
    async with staged(journal_url, never) as engine:
        await engine.rules.add(DENY, user_id="u")
        newer = update(policy_rules).values(definition='{"verdict":"allow","weekday":"monday"}')
        await engine.log.store.write([newer])
        with pytest.raises(LogUnavailable, match="'no' cannot be read by this release"):
            await events_of(engine, call())
        last = (await stream_of(engine))[-1]
        assert not isinstance(last, Executed)


@pytest.mark.parametrize("rule", [Rule(verdict="deny", predicate="nowhere(a)"), Rule(verdict="deny", tenant="g*")])
async def test_rules_that_cannot_be_used_are_not_kept(journal_url: str, rule: Rule) -> None:
    async with Engine.open(journal_url) as engine:
        with pytest.raises(Refused):
            await engine.rules.add(rule, user_id="u")
        with pytest.raises(Refused, match="decision"):
            await engine.rules.add(Rule(verdict="allow", decision="m:c1"), user_id="u")
        assert await engine.rules.list(user_id="u") == []


async def test_null_keeps_no_rules_and_says_so() -> None:
    async with staged("null://", answer) as engine:
        with pytest.raises(Refused, match="stores nothing"):
            await engine.rules.add(DENY, user_id="u")
        assert await engine.rules.list(user_id="u") == []
        assert isinstance(await outcome_of(engine, call()), Executed)


async def test_without_rules_a_call_reads_nothing(tmp_path: Path, sqlite_template: Path) -> None:
    shutil.copyfile(sqlite_template, tmp_path / "journal.db")
    async with staged(f"sqlite:///{tmp_path}/journal.db", answer) as engine:
        reads: list[Any] = []
        store = engine.log.store
        read = store.read

        async def counted(statement: Any) -> Any:
            reads.append(statement)
            return await read(statement)

        store.read = counted  # type: ignore[method-assign]
        await outcome_of(engine, call())
        assert reads == []
        await engine.rules.add(Rule(verdict="deny", tool="elsewhere"), user_id="u")
        for number in range(3):
            await outcome_of(engine, call(call_id=f"n{number}"))
        # The rules, and the stored rows: nothing tells which of them changed.
        assert len(reads) == 2


async def test_concurrent_changes_all_count(journal_url: str) -> None:
    async with two_engines(journal_url) as (here, there):

        async def add(engine: Engine, number: int) -> None:
            await engine.rules.add(Rule(verdict="ask", id=f"r{number}"), user_id="u")

        async with anyio.create_task_group() as tasks:
            for number in range(12):
                tasks.start_soon(add, (here, there)[number % 2], number)
        rules = await here.rules.list(user_id="u")
        assert sorted(rule.ordinal or 0 for rule in rules) == [10 * place for place in range(1, 13)]
        assert await there.rules.list(user_id="u") == rules


async def test_a_rule_added_twice_at_once_is_one_or_is_refused(journal_url: str) -> None:
    async with two_engines(journal_url) as (here, there):
        kept: list[Rule] = []

        async def add(engine: Engine) -> None:
            kept.append(await engine.rules.add(DENY, user_id="u"))

        async with anyio.create_task_group() as tasks:
            for engine in (here, there) * 4:
                tasks.start_soon(add, engine)
        assert await here.rules.list(user_id="u") == kept[:1]
        assert kept == kept[:1] * 8


class Weather:
    """Rules that change while calls are made, and how many calls met one state of them from beginning to end."""

    def __init__(self) -> None:
        self.changes = 0
        self.stable = True
        self.judged = 0
        self.news = anyio.Event()

    async def change(self, engine: Engine, done: anyio.Event) -> None:
        """Forbid, then allow, six times; each state stays until five calls have met it."""
        for number in range(6):
            for forbid in (True, False):
                self.stable = False
                if forbid:
                    await engine.rules.add(Rule(verdict="deny", id=f"no{number}"), user_id="u")
                else:
                    await engine.rules.revoke(f"no{number}", user_id="u")
                self.changes, self.stable, self.judged = self.changes + 1, True, 0
                while self.judged < 5:
                    await self.news.wait()
                    self.news = anyio.Event()
        done.set()

    async def make_calls(self, engine: Engine, caller: int, done: anyio.Event) -> None:
        number = 0
        while not done.is_set():
            number += 1
            state = (self.changes, self.stable)
            event = await outcome_of(engine, call(call_id=f"c{caller}-{number}"))
            if state == (self.changes, True):
                assert isinstance(event, Denied if self.changes % 2 else Executed)
                self.judged += 1
                self.news.set()


async def test_calls_made_while_rules_change_meet_one_of_the_two_states(journal_url: str) -> None:
    """A call that began after a change had returned, and ended before the next one began, met just that."""
    weather, done = Weather(), anyio.Event()
    async with two_engines(journal_url) as (here, there):
        async with anyio.create_task_group() as tasks:
            for caller, engine in enumerate((here, there, there)):
                tasks.start_soon(weather.make_calls, engine, caller, done)
            tasks.start_soon(weather.change, here, done)
        await proved(there)
    assert weather.changes == 12
