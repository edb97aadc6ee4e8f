"""Running a swarm: its processes, the tickets they share, and who is killed when."""

from __future__ import annotations

import fcntl
import os
import select
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Self

import msgspec

from tests.crash.swarm import TURN, Ticket, planned_turn
from tests.crash.swarm_process import members_in
from tests.shape import ROOT

__all__ = ("Size", "Swarm", "tickets_for")

PIPE = 4096
"""Bytes of tickets that wait: few, so that how many were given out says how far the swarm has come."""

PATIENCE = 60.0
"""Seconds in which a swarm must take a ticket, and a process come to its end."""

BACKENDS = ("asyncio", "trio")


class Size(msgspec.Struct, frozen=True, kw_only=True):
    """How large a swarm is, how many of its processes are killed, and how many seconds its calls wait."""

    workers: int
    approvers: int
    calls: int
    kills: int
    patience: float = 20.0
    seed: int = 1


def tickets_for(size: Size) -> list[Ticket]:
    """Return tickets for so many calls: most once, some by several at the same moment, some again much later."""
    luck = Random(size.seed)
    placed: list[tuple[float, int, Ticket]] = []
    number = calls = 0

    def place(at: float, ticket: Ticket) -> None:
        placed.append((at, len(placed), ticket))

    while calls < size.calls:
        if number % TURN == 0 and luck.random() < 0.15:
            place(number, Ticket(number, turn=True))
            calls += len(planned_turn(number))
        copies = 3 if luck.random() < 0.08 else 1
        for _ in range(copies):
            place(number, Ticket(number, together=copies > 1))
        calls += copies
        while luck.random() < 0.3:
            # Soon, when whoever died of it has just been found to be dead; or when all is long over.
            place(number + luck.expovariate(1 / luck.choice((100, 400, size.calls / 8))), Ticket(number))
            calls += 1
        number += 1
    return [ticket for _at, _order, ticket in sorted(placed)]


class Member:
    """One process, and which it is: the so-manieth (``life``) in its place (``slot``) of its role."""

    def __init__(self, process: subprocess.Popen[bytes], name: str, role: str, slot: int, life: int) -> None:
        self.process = process
        self.name = name
        self.role = role
        self.slot = slot
        self.life = life

    def __repr__(self) -> str:
        return f"<Member {self.name} {self.process.returncode}>"


class Swarm:
    """The processes of a swarm; on leaving, all are ended.

    :ivar killed: the names of those that were killed
    """

    def __init__(self, url: str, folder: Path, size: Size) -> None:
        self.killed: set[str] = set()
        self._url = url
        self._folder = folder
        self._size = size
        self._luck = Random(size.seed)
        self._stack = ExitStack()
        self._take, self._give = os.pipe()
        fcntl.fcntl(self._give, fcntl.F_SETPIPE_SZ, PIPE)
        os.set_blocking(self._take, False)
        self._members: list[Member] = []
        (folder / "patience").write_text(f"{size.patience}")

    def __enter__(self) -> Self:
        self._start("follower", 0, 0)
        for slot in range(self._size.workers):
            self._start("worker", slot, 0)
        for slot in range(self._size.approvers):
            self._start("approver", slot, 0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end_tickets()
        for member in self._members:
            if member.process.poll() is None:
                member.process.kill()
            member.process.wait()
        self._stack.close()

    def feed(self, tickets: list[Ticket]) -> None:
        """Give out all tickets, killing processes on the way; then let the workers come to their end."""
        self._wait_for_all()
        killings = sorted(self._luck.sample(range(len(tickets) // 20, len(tickets)), self._size.kills))
        for number, ticket in enumerate(tickets):
            while killings and killings[0] <= number:
                killings.pop(0)
                self._kill_one()
            _readable, ready, _failed = select.select([], [self._give], [], PATIENCE)
            assert ready, f"nobody takes tickets: {self._members}"
            os.write(self._give, ticket.packed())
        self._end_tickets()
        self._end("worker")

    def _wait_for_all(self) -> None:
        """Wait until every process has its engine, so that calls meet approvers from the beginning."""
        deadline = time.monotonic() + PATIENCE
        names = {member.name for member in self._members if member.role != "follower"}
        while not names <= {member.process for member in members_in(self._folder)}:
            assert time.monotonic() < deadline, f"not everybody has come: {self._members}"
            time.sleep(0.02)

    def end_approvers(self) -> None:
        """Let nobody approve any more."""
        self._end("approver")

    def end_follower(self, position: int) -> None:
        """Let the reader come as far as this position, and end."""
        (follower,) = [member for member in self._members if member.role == "follower"]
        follower.process.communicate(f"{position}\n".encode(), timeout=PATIENCE)
        self._require_ended_well(follower)

    def _end_tickets(self) -> None:
        if self._give >= 0:
            os.close(self._give)
            os.close(self._take)
            self._give = self._take = -1

    def _end(self, role: str) -> None:
        ending = [member for member in self._members if member.role == role]
        for member in ending:
            member.process.communicate(timeout=PATIENCE)
            self._require_ended_well(member)
            self._members.remove(member)

    def _require_ended_well(self, member: Member) -> None:
        said = (self._folder / f"{member.name}.err").read_text()
        assert member.process.returncode == 0, f"{member}: {said[-4000:]}"
        assert "never awaited" not in said
        assert "Traceback" not in said, said[-4000:]

    def _kill_one(self) -> None:
        """Kill somebody, at a moment of no meaning, and start another in its place."""
        time.sleep(self._luck.uniform(0, 0.05))
        role = "approver" if self._size.approvers and self._luck.random() < 0.2 else "worker"
        victim = self._luck.choice([member for member in self._members if member.role == role])
        victim.process.kill()
        victim.process.communicate()
        self.killed.add(victim.name)
        self._members.remove(victim)
        self._start(role, victim.slot, victim.life + 1)

    def _start(self, role: str, slot: int, life: int) -> None:
        name = f"{role}-{slot}-{life}"
        rest = {"worker": [str(self._take)], "approver": [], "follower": [str(self._folder / "followed")]}[role]
        errors = self._stack.enter_context((self._folder / f"{name}.err").open("wb"))
        process = subprocess.Popen(
            [sys.executable, "-m", f"tests.crash.swarm_{role}", self._url, BACKENDS[(slot + life) % 2], *rest],
            cwd=ROOT,
            env={**os.environ, "SWARM_FOLDER": str(self._folder), "SWARM_NAME": name},
            stdin=subprocess.PIPE,
            stderr=errors,
            pass_fds=(self._take,) if role == "worker" else (),
        )
        self._members.append(Member(process, name, role, slot, life))
