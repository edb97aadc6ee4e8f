"""What a log must hold, kept in plain lists: the model of the log's state machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from events import (
    Approved,
    Confirmed,
    Denied,
    Executed,
    Failed,
    LateOutcome,
    LogUnavailable,
    Paused,
    Proposed,
    Recorded,
    Resumed,
    ToolEvent,
)
from events.store import Outcome, Store, Unit
from events.transitions import Attempt
from tests.events.appends import follow, proposed
from tests.lives import state_after

__all__ = ("KEYS", "STEPS", "TENANTS", "Model", "UnreliableStore", "make_step")

T = TypeVar("T")

TENANTS: tuple[str | None, ...] = ("u", "v", None, "")
KEYS: tuple[str, ...] = ("a", "b", "c")
STEPS: tuple[str, ...] = (
    "ask approval",
    "ask client",
    "ask input",
    "approve",
    "resume",
    "answer",
    "takeover",
    "execute",
    "fail",
    "confirm",
    "late",
    "reject",
    "expire",
    "forbid",
)


def make_step(name: str, first: Proposed) -> ToolEvent:
    """Return a new event of a call."""
    match name:
        case "ask approval" | "ask client" | "ask input":
            kinds = {"approval": "awaiting_approval", "client": "requires_client_execution", "input": "requires_input"}
            return follow(Paused, first, pause_type=kinds[name.removeprefix("ask ")], reason="ask")
        case "approve":
            return follow(Approved, first, by="ada", digest=first.digest, fingerprint="f", arguments={"edited": 1})
        case "resume" | "takeover":
            return follow(Resumed, first, worker="w2", takeover=name == "takeover")
        case "answer":
            return follow(Resumed, first, worker="w2", answer=None)
        case "execute":
            return follow(Executed, first, result={"r": [1, "é"]}, rule="r1")
        case "fail":
            return follow(Failed, first, kind="exception", message="boom")
        case "confirm":
            return follow(Confirmed, first)
        case "late":
            return follow(LateOutcome, first, outcome=follow(Failed, first, kind="timeout", message="late"))
        case _:
            reasons = {"reject": "rejected", "expire": "expired", "forbid": "policy"}
            return follow(Denied, first, reason=reasons[name], message="no")


class Stream(msgspec.Struct):
    """One call as the model knows it."""

    first: Proposed
    attempt: Attempt
    appends: list[list[Recorded[ToolEvent]]]

    @property
    def records(self) -> list[Recorded[ToolEvent]]:
        """All of its events."""
        return [entry for append in self.appends for entry in append]


class Model:
    """The log as lists of appends, by tenant and key."""

    def __init__(self) -> None:
        self.streams: dict[tuple[str | None, str], Stream] = {}

    def first_of(self, tenant: str | None, name: str, idempotent: bool) -> Proposed:
        """Return the proposal of a call, a fresh one where there is none yet."""
        stream = self.streams.get((tenant, f"m:{name}"))
        return stream.first if stream else proposed(name, user_id=tenant, idempotent=idempotent, arguments={"n": name})

    def fold(self, events: Sequence[ToolEvent]) -> Attempt | None:
        """Return the state after these events; None: the lifecycle forbids one of them."""
        stream = self.streams.get((events[0].user_id, events[0].key))
        return state_after(stream.attempt if stream else None, events)

    def accept(self, events: Sequence[ToolEvent], recorded: list[Recorded[ToolEvent]]) -> None:
        """Take an append in that the log has accepted."""
        name = (events[0].user_id, events[0].key)
        attempt = self.fold(events)
        assert attempt is not None
        stream = self.streams.get(name)
        if stream is None:
            assert isinstance(events[0], Proposed)
            stream = self.streams[name] = Stream(events[0], attempt, [])
        stream.attempt = attempt
        stream.appends.append(recorded)

    def version(self, tenant: str | None, key: str) -> int:
        """Return how many events a stream has."""
        stream = self.streams.get((tenant, key))
        return stream.attempt.version if stream else 0

    def records(self) -> list[Recorded[ToolEvent]]:
        """Return every event in the order of the log."""
        everything = [entry for stream in self.streams.values() for entry in stream.records]
        return sorted(everything, key=lambda entry: entry.position)


class UnreliableStore:
    """A store whose next commit fails when told so: ``before`` anything is written, or ``after`` all of it is."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.fails: str | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    async def commit(self, units: Sequence[Unit]) -> Sequence[Outcome]:
        """Commit, or fail as told."""
        fails, self.fails = self.fails, None
        if fails == "before":
            raise LogUnavailable("the writer died before the commit")
        outcomes = await self.store.commit(units)
        if fails == "after":
            raise LogUnavailable("the writer died after the commit")
        return outcomes
