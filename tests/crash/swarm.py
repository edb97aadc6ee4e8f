"""The calls of a swarm: many processes on one journal, all making the same calls, each call the same in every process.

A call is named by a number; what it is follows from that number alone. Processes are told numbers, as tickets in a pipe
that they share, so that whoever is free takes the next, and a killed process takes its tickets with it.
"""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from typing import Final, Literal, TypeAlias

import anyio
import msgspec

from engine import CallContext, Limits, Settings, ToolCall

__all__ = (
    "KINDS",
    "LEASE",
    "LEFT_ALONE",
    "TENANTS",
    "TURN",
    "Kind",
    "PlannedCall",
    "Ticket",
    "Tickets",
    "planned",
    "planned_turn",
    "settings_in",
)

Kind: TypeAlias = Literal[
    "plain", "slow", "fails", "again", "gated", "gated_again", "asks", "client", "headless", "wrong", "nobody"
]
KINDS: Final[dict[Kind, int]] = {
    "plain": 24,
    "slow": 14,
    "fails": 8,
    "again": 14,
    "gated": 10,
    "gated_again": 6,
    "asks": 4,
    "client": 8,
    "headless": 4,
    "wrong": 4,
    "nobody": 4,
}
"""What a call may be, and how often it is, in per cent."""

TENANTS: Final = (None, "", "ada", "\u00e5sa")
TURN: Final = 5
"""Calls of a turn."""

LEFT_ALONE: Final = 0.15
"""How many of the calls that wait are never decided: they end by their deadline."""

LEASE: Final = 2.0
"""Seconds after which a process that was killed counts as dead."""


def settings_in(folder: Path) -> Settings:
    """Return the settings of a swarm's engines: everything that takes long elsewhere is short.

    How many seconds a call waits, or is left to a takeover, is in the folder.
    """
    wait = float((folder / "patience").read_text())
    limits = Limits(lease=LEASE, decide_within=wait, answer_within=wait, resume_within=wait)
    return Settings(limits=limits, spool=folder / "spool", reconcile_interval=3.0)


class PlannedCall(msgspec.Struct, frozen=True):
    """One call of the swarm."""

    number: int
    kind: Kind
    call: ToolCall
    context: CallContext


def planned(number: int) -> PlannedCall:
    """Return the call of a number: the same in every process."""
    group, place = divmod(number, TURN)
    # Four tenants have each turn, so that every key is wanted by all of them.
    turn, tenant = divmod(group, len(TENANTS))
    luck = Random(turn)
    scope, shared_id = luck.random(), luck.random() < 0.2
    kind: Kind = Random(number).choices(list(KINDS), list(KINDS.values()))[0]
    arguments = {"n": "many" if kind == "wrong" else number}
    name = "plain" if kind == "wrong" else "gated" if kind == "headless" else kind
    context = CallContext(
        user_id=TENANTS[tenant],
        message_id=f"m{turn}" if scope < 0.85 else None,
        run_id=f"r{turn}" if 0.85 <= scope < 0.95 else None,
        headless=kind == "headless",
        client_tools=({"name": "client"},) if kind == "client" else (),
    )
    # A provider that counts from zero in every turn, or gives all parallel calls one id.
    bare = f"b{turn % 100}_" if scope >= 0.95 else ""
    call_id = f"{bare}call_{0 if shared_id else place}"
    return PlannedCall(number, kind, ToolCall(id=call_id, name=name, arguments=arguments), context)


def planned_turn(number: int) -> list[PlannedCall]:
    """Return those calls of a number's turn that can be made together: they share their context."""
    first = number - number % TURN
    calls = [planned(first + place) for place in range(TURN)]
    return [call for call in calls if call.kind not in ("headless", "client")]


class Ticket(msgspec.Struct, frozen=True):
    """The order to make a call.

    :ivar together: wait for the next beat, as whoever has the same ticket does
    :ivar turn: make all calls of its turn at once
    """

    number: int
    together: bool = False
    turn: bool = False

    SIZE = 16

    def packed(self) -> bytes:
        """Return it as the pipe carries it: all are of one length, so that no two processes share one."""
        return f"{self.number:>12}{int(self.together)}{int(self.turn)} \n".encode()

    @classmethod
    def unpacked(cls, text: bytes) -> Ticket:
        """Return a ticket that came through the pipe."""
        assert len(text) == cls.SIZE, text
        return cls(int(text[:12]), text[12:13] == b"1", text[13:14] == b"1")


class Tickets:
    """The end of the pipe at which a process takes its tickets."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._turnstile = anyio.Lock()

    async def take(self) -> Ticket | None:
        """Wait for a ticket; None: there will be no more."""
        async with self._turnstile:
            while True:
                await anyio.wait_readable(self._pipe)
                try:
                    text = os.read(self._pipe, Ticket.SIZE)
                except BlockingIOError:
                    # Another process was faster.
                    continue
                return Ticket.unpacked(text) if text else None
