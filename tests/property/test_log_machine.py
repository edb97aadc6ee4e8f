"""A state machine of appends, resends, strangers, wrong orders and dying writers, against the pure fold."""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from events import Append, EventLog, LogUnavailable, ToolEvent, TransitionRejected, VersionConflict
from events.codec import Codec
from events.migration import EVENTS_CHAIN
from events.opening import open_log
from events.seal import seal
from events.writer import Writer
from projections import AttemptRow, AttemptsProjection, fold_row, rebuild, verify
from projections.migration import PROJECTIONS_CHAIN
from projections.rows import read_attempt
from tests.conftest import TEMPLATE
from tests.logs import opened, recorded_events
from tests.postgres_server import PostgresServer
from tests.property.log_model import KEYS, STEPS, TENANTS, Model, UnreliableStore, make_step

__all__ = ()

T = TypeVar("T")

tenants = st.sampled_from(TENANTS)
keys = st.sampled_from(KEYS)
steps = st.lists(st.sampled_from(STEPS), min_size=1, max_size=3)


class LogMachine(RuleBasedStateMachine):
    """Does to a log and to its model the same, and compares what they say."""

    def __init__(self, portal: BlockingPortal, url: str) -> None:
        super().__init__()
        self.portal = portal
        self.url = url
        self.model = Model()

    def _run(self, function: Callable[..., Awaitable[T]], *args: Any) -> T:
        """Run an async function in the portal's loop."""
        return self.portal.call(function, *args)

    @initialize()
    def open(self) -> None:
        """Open the log over a store that can be told to fail."""
        inner = self._run(open_log, self.url, AttemptsProjection(), (EVENTS_CHAIN, PROJECTIONS_CHAIN))
        self.store = UnreliableStore(inner.store)
        store: Any = self.store
        self.log = EventLog(store, AttemptsProjection(), Codec(), Writer(store))

    def teardown(self) -> None:
        """At the end: fold = table, and verify and rebuild agree."""
        if hasattr(self, "log"):
            self._run(self._check)
            self._run(self.log.aclose)

    async def _check(self) -> None:
        await seal(self.log)
        for _ in range(2):
            assert (await verify(self.log)).problems == ()
            for (tenant, key), stream in self.model.streams.items():
                row: AttemptRow | None = None
                for entry in stream.records:
                    row = fold_row(row, entry)
                assert row == await read_attempt(self.log, key, tenant)
            assert (await rebuild(self.log)).ok

    def _append(self, events: list[ToolEvent], expected: int) -> None:
        """Append to both: the log accepts exactly what the fold accepts."""
        after = self.model.fold(events)
        try:
            recorded = self._run(self.log.append, events[0].key, events, expected, events[0].user_id)
        except TransitionRejected:
            assert after is None
            return
        assert after is not None
        assert [entry.version for entry in recorded] == list(range(expected + 1, after.version + 1))
        self.model.accept(events, recorded)

    @rule(tenant=tenants, key=keys, names=steps, idempotent=st.booleans())
    def move(self, tenant: str | None, key: str, names: list[str], idempotent: bool) -> None:
        """Some events for a call that is there, or a proposal and some events for one that is not."""
        first = self.model.first_of(tenant, key, idempotent)
        events: list[ToolEvent] = [make_step(name, first) for name in names]
        version = self.model.version(tenant, first.key)
        if version == 0:
            events = [first, *events[:-1]]
        self._append(events, version)

    @rule(tenant=tenants, key=keys, name=st.sampled_from(STEPS), off=st.sampled_from([-2, -1, 1, 5]))
    def miss_the_version(self, tenant: str | None, key: str, name: str, off: int) -> None:
        """An append with another expected version is a conflict, whatever it holds."""
        first = self.model.first_of(tenant, key, False)
        version = self.model.version(tenant, first.key)
        if version + off > 0:
            with pytest.raises(VersionConflict) as conflict:
                self._run(self.log.append, first.key, [make_step(name, first)], version + off, tenant)
            assert conflict.value.actual == (version or None)

    @rule(tenant=tenants, key=keys)
    def begin_again(self, tenant: str | None, key: str) -> None:
        """A second proposal under a taken key is a conflict, not a resend."""
        version = self.model.version(tenant, f"m:{key}")
        if version:
            rival = Model().first_of(tenant, key, True)
            with pytest.raises(VersionConflict) as conflict:
                self._run(self.log.append, rival.key, [rival], 0, tenant)
            assert conflict.value.actual == version

    @rule(data=st.data())
    def resend(self, data: st.DataObject) -> None:
        """An append that was accepted, once more, is answered as it was then."""
        streams = [self.model.streams[name] for name in self.model.streams]
        if not streams:
            return
        stream = data.draw(st.sampled_from(streams))
        index = data.draw(st.integers(0, len(stream.appends) - 1))
        recorded = stream.appends[index]
        events = [entry.event for entry in recorded]
        again = self._run(self.log.append, recorded[0].key, events, recorded[0].version - 1, recorded[0].user_id)
        assert again == recorded

    @rule(tenant=tenants, key=keys, other=tenants, name=st.sampled_from(STEPS))
    def intrude(self, tenant: str | None, key: str, other: str | None, name: str) -> None:
        """A tenant that has no such call learns nothing of another's, and changes nothing."""
        if tenant == other or not self.model.version(tenant, f"m:{key}") or self.model.version(other, f"m:{key}"):
            return
        event = make_step(name, Model().first_of(other, key, True))
        with pytest.raises(VersionConflict) as conflict:
            self._run(self.log.append, event.key, [event], self.model.version(tenant, event.key), other)
        assert conflict.value.actual is None

    @rule(one=keys, two=keys, names=st.tuples(st.sampled_from(STEPS), st.sampled_from(STEPS)), tenant=tenants)
    def move_two(self, one: str, two: str, names: tuple[str, str], tenant: str | None) -> None:
        """Two calls at once: both move, or neither."""
        pairs = [(self.model.first_of(tenant, key, True), name) for key, name in zip((one, two), names, strict=True)]
        if one == two:
            return
        events = [make_step(name, first) if self.model.version(tenant, first.key) else first for first, name in pairs]
        versions = [self.model.version(tenant, event.key) for event in events]
        appends = [
            Append(key=event.key, events=(event,), expected_version=version, user_id=tenant)
            for event, version in zip(events, versions, strict=True)
        ]
        legal = all(self.model.fold([event]) is not None for event in events)
        try:
            recorded = self._run(self.log.append_many, appends)
        except TransitionRejected:
            assert not legal
            return
        assert legal
        for event, entries in zip(events, recorded, strict=True):
            self.model.accept([event], entries)

    @rule(tenant=tenants, key=keys, name=st.sampled_from(STEPS), fails=st.sampled_from(["before", "after"]))
    def die(self, tenant: str | None, key: str, name: str, fails: str) -> None:
        """The writer dies around a commit; whoever appends the same events again finds or makes them, once."""
        first = self.model.first_of(tenant, key, True)
        version = self.model.version(tenant, first.key)
        event: ToolEvent = make_step(name, first) if version else first
        self.store.fails = fails
        with pytest.raises(LogUnavailable):
            self._run(self.log.append, event.key, [event], version, tenant)
        self.reopen()
        self._append([event], version)

    @rule()
    def reopen(self) -> None:
        """Close the log and open it again."""
        if not self.url.endswith("sqlite://"):
            self._run(self.log.aclose)
            self.open()

    @invariant()
    def the_log_is_the_model(self) -> None:
        """After every step, what is read is what was acknowledged."""
        if hasattr(self, "log"):
            assert self._run(recorded_events, self.log) == self.model.records()


@pytest.fixture(params=["asyncio", "trio"])
def portal(request: pytest.FixtureRequest) -> Iterator[BlockingPortal]:
    """A loop in a thread of its own: Hypothesis is not async."""
    with start_blocking_portal(request.param) as portal:
        yield portal


def run_machine(portal: BlockingPortal, urls: Iterator[str], examples: int, length: int) -> None:
    chosen = settings(
        max_examples=examples,
        stateful_step_count=length,
        deadline=None,
        # A run that decides about a change must decide alike each time.
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    # A factory will do, whatever its annotation says.
    run_state_machine_as_test(lambda: LogMachine(portal, next(urls)), settings=chosen)  # type: ignore[arg-type]


async def _make(path: Path) -> None:
    async with opened(f"sqlite:///{path}"):
        """Opening it makes its tables."""


def sqlite_urls(folder: Path) -> Iterator[str]:
    template = folder / "template.db"
    anyio.run(_make, template)
    number = 0
    while True:
        number += 1
        shutil.copy(template, folder / f"{number}.db")
        yield f"sqlite:///{folder}/{number}.db"


def postgres_urls(server: PostgresServer) -> Iterator[str]:
    while True:
        yield server.create_database(TEMPLATE)


def test_the_log_does_what_the_model_does_on_sqlite(portal: BlockingPortal, tmp_path: Path) -> None:
    run_machine(portal, sqlite_urls(tmp_path), 15, 25)


@pytest.mark.postgres
def test_the_log_does_what_the_model_does_on_postgres(portal: BlockingPortal, postgres: PostgresServer) -> None:
    run_machine(portal, postgres_urls(postgres), 4, 25)


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_the_log_does_what_the_model_does_at_length(portal: BlockingPortal, tmp_path: Path) -> None:
    run_machine(portal, sqlite_urls(tmp_path), 120, 60)


@pytest.mark.soak
@pytest.mark.postgres
@pytest.mark.timeout(900)
def test_the_log_does_what_the_model_does_on_postgres_at_length(
    portal: BlockingPortal, postgres: PostgresServer
) -> None:
    run_machine(portal, postgres_urls(postgres), 30, 60)
