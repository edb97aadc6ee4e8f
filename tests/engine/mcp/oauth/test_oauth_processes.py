"""Several processes that need one authorization at the same time."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest
from sqlalchemy import update

from engine.mcp.oauth_errors import AuthorizationNeeded
from engine.mcp.token_store import Kept
from engine.schema import oauth_tokens
from tests.cli.command import environment
from tests.engine.mcp.oauth.authority import Authority, authority
from tests.engine.mcp.oauth.consents import consented, get, kept_of, scope_of, serving
from tests.shape import ROOT


class _Process:
    """A worker that waits to be told."""

    def __init__(self, journal: str, server: str, calls: int) -> None:
        self.popen = subprocess.Popen(
            [sys.executable, "-m", "tests.engine.mcp.oauth.refresher", journal, server, str(calls)],
            cwd=ROOT,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ready(self) -> None:
        """Wait until it waits."""
        assert self.popen.stdout is not None
        assert self.popen.stdout.readline() == "ready\n"

    def go(self) -> None:
        """Tell it."""
        assert self.popen.stdin is not None
        self.popen.stdin.write("\n")
        self.popen.stdin.flush()

    def ended(self) -> Any:
        """Return how its requests ended."""
        out, _ = self.popen.communicate(timeout=60)
        return json.loads(out)


@contextmanager
def _processes(journal: str, server: str, count: int, calls: int) -> Iterator[list[_Process]]:
    started = [_Process(journal, server, calls) for _ in range(count)]
    try:
        for each in started:
            each.ready()
        yield started
    finally:
        for each in started:
            each.popen.kill()
            each.popen.communicate()


def _consented(journal: str, server: Authority) -> Kept:
    async def consent() -> Kept:
        async with serving(journal) as services:
            await consented(server.url, scope_of(services))
            return await kept_of(server.url, scope_of(services))

    kept = anyio.run(consent)
    server.expire()
    server.asked.clear()
    return kept


def _stored(journal: str, server: Authority) -> Kept:
    async def look() -> Kept:
        async with serving(journal) as services:
            return await kept_of(server.url, scope_of(services))

    return anyio.run(look)


def test_case_mcp_10_two_processes_cause_one_refresh(journal_url: str) -> None:
    """All ten requests get through; the loser takes what the winner has stored."""
    with authority() as server:
        alpha = _consented(journal_url, server)
        server.hold = threading.Event()
        with _processes(journal_url, server.url, 2, 5) as both:
            for each in both:
                each.go()
            assert server.until("GET /mcp", 10)
            assert server.holding.wait(20)
            server.hold.set()
            assert [each.ended() for each in both] == [[200] * 5] * 2
        assert server.refreshes == 1
        assert _stored(journal_url, server).version == alpha.version + 1


def test_case_mcp_10_a_worker_killed_after_the_server_rotated(sqlite_url: str) -> None:
    """What it was given died with it: the next one is told to authorize anew, and what is stored is kept."""
    with authority() as server:
        alpha = _consented(sqlite_url, server)
        server.hold = threading.Event()
        with _processes(sqlite_url, server.url, 1, 1) as (victim,):
            victim.go()
            assert server.holding.wait(20)
            victim.popen.kill()
            victim.popen.wait()
            server.hold.set()
        assert _stored(sqlite_url, server) == alpha
        with pytest.raises(AuthorizationNeeded, match="has withdrawn its authorization"):
            anyio.run(_inherit, sqlite_url, server)
        assert _stored(sqlite_url, server).grant.client_metadata == alpha.grant.client_metadata


async def _inherit(journal: str, server: Authority) -> None:
    async with serving(journal) as services:
        past = datetime.now(UTC) - timedelta(seconds=1)
        await services.store.write([update(oauth_tokens).values(refreshing_until=past)])
        await get(server.url, scope_of(services))
