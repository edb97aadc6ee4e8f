"""Tokens that end: renewed once, by one of all who need them, and what they become is never lost."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from sqlalchemy import select, update

from engine.contract import Scope
from engine.mcp.oauth_errors import AuthorizationFailed, AuthorizationNeeded, AuthorizationUnavailable
from engine.mcp.refreshing import Grants
from engine.mcp.token_store import Kept
from engine.schema import oauth_tokens
from events.errors import JournalError, LogUnavailable
from tests.engine.mcp.oauth.authority import Authority, authority
from tests.engine.mcp.oauth.consents import consented, get, kept_of, scope_of, serving, store_of


async def _gets(server: Authority, scope: Scope, calls: int, ended: list[int | str]) -> None:
    """Send several requests at once, and note the status or the error of each."""

    async def one() -> None:
        try:
            ended.append((await get(server.url, scope)).status_code)
        except JournalError as error:
            ended.append(str(error))

    async with anyio.create_task_group() as tasks:
        for _ in range(calls):
            tasks.start_soon(one)


@pytest.mark.anyio
@pytest.mark.parametrize("known", ["turned down", "ended by the clock"])
async def test_case_mcp_10_five_parallel_calls_cause_one_refresh(sqlite_url: str, known: str) -> None:
    """The five get through, with one refresh request, and what it brought is what is stored."""
    with authority() as server:
        async with serving(sqlite_url) as services:
            scope = scope_of(services)
            server.lifetime = 0 if known == "ended by the clock" else 3600
            await consented(server.url, scope)
            alpha = await kept_of(server.url, scope)
            server.expire()
            server.lifetime = 3600
            ended: list[int | str] = []
            await _gets(server, scope, 5, ended)
            assert ended == [200] * 5
            assert server.refreshes == 1
            beta = await kept_of(server.url, scope)
            assert beta.version == alpha.version + 1
            assert beta.grant.refresh_token not in (None, alpha.grant.refresh_token)
            assert beta.grant.client_metadata == alpha.grant.client_metadata
            assert (await get(server.url, scope)).status_code == 200
            assert server.refreshes == 1


@pytest.mark.anyio
async def test_case_mcp_10_a_503_keeps_what_is_stored_and_can_be_tried_again(journal_url: str) -> None:
    """All that waited get one clear error for one request; the next call renews."""
    with authority() as server:
        async with serving(journal_url) as services:
            scope = scope_of(services)
            await consented(server.url, scope)
            server.expire()
            server.answers["/token"] = [(503, {}, {"error": "temporarily_unavailable"})]
            server.hold = threading.Event()
            ended: list[int | str] = []
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_gets, server, scope, 5, ended)
                while "4 waiting" not in repr(services.shared(Grants)):
                    await anyio.lowlevel.checkpoint()
                server.hold.set()
            said = "127.0.0.1 cannot renew the authorization now (HTTP 503); try again later; nothing was done"
            assert ended == [said] * 5
            assert server.asked.count("POST /token") == 2
            assert (await get(server.url, scope)).status_code == 200
            assert server.refreshes == 1
            server.expire()
            before = await kept_of(server.url, scope)
            server.answers["/token"] = [(429, {}, {})]
            with pytest.raises(AuthorizationUnavailable):
                await get(server.url, scope)
            assert await kept_of(server.url, scope) == before


@pytest.mark.anyio
async def test_case_mcp_10_a_401_after_a_refresh_is_one_error(sqlite_url: str) -> None:
    """A server that turns down whatever it is shown is asked twice, and the token is renewed once."""
    with authority() as server:
        async with serving(sqlite_url) as services:
            scope = scope_of(services)
            await consented(server.url, scope)
            server.asked.clear()
            server.answers["/mcp"] = [(401, {}, {"error": "invalid_token"})] * 9
            with pytest.raises(AuthorizationNeeded, match="turns down a token that has just been renewed"):
                await get(server.url, scope)
            assert server.asked == ["GET /mcp", "POST /token", "GET /mcp"]


@pytest.mark.anyio
async def test_case_mcp_10_a_withdrawn_authorization_is_kept_and_marked(sqlite_url: str) -> None:
    """No request follows, until a person agrees again; then everything works."""
    with authority() as server:
        async with serving(sqlite_url) as services:
            scope = scope_of(services)
            await consented(server.url, scope)
            before = await kept_of(server.url, scope)
            server.withdraw()
            needed = r"withdrawn its authorization \(invalid_grant\); run `calljournal tools authorize t1`"
            with pytest.raises(AuthorizationNeeded, match=needed):
                await get(server.url, scope)
            after = await kept_of(server.url, scope)
            assert (after.grant.refused, after.version) == ("invalid_grant", before.version + 1)
            assert after.grant.client_metadata == before.grant.client_metadata
            asked = list(server.asked)
            with pytest.raises(AuthorizationNeeded, match=needed):
                await get(server.url, scope)
            assert server.asked == asked
            await consented(server.url, scope)
            assert (await get(server.url, scope)).status_code == 200


@pytest.mark.anyio
async def test_other_refusals_of_a_refresh_keep_everything(sqlite_url: str) -> None:
    """Each is one clear error with the server's code, and never with what else it says."""
    answers: Sequence[tuple[int, Any, str]] = (
        (400, {"error": "invalid_scope", "error_description": "canary-echo"}, "(invalid_scope, HTTP 400)"),
        (400, {"error": "<b>canary-echo</b>"}, "(HTTP 400)"),
        (302, b"canary-echo", "(HTTP 302)"),
        (200, {"refresh_token": "canary-echo"}, "(HTTP 200)"),
        (200, b"\xff canary-echo", "(HTTP 200)"),
        (200, {"error": "slow_down"}, "(slow_down, HTTP 200)"),
    )
    with authority() as server:
        async with serving(sqlite_url) as services:
            scope = scope_of(services)
            await consented(server.url, scope)
            before = await kept_of(server.url, scope)
            server.expire()
            for status, content, said in answers:
                server.answers["/token"] = [(status, {"Location": "/elsewhere"}, content)]
                with pytest.raises(AuthorizationFailed) as caught:
                    await get(server.url, scope)
                assert str(caught.value) == f"127.0.0.1 did not renew the authorization {said}; it is kept"
            assert await kept_of(server.url, scope) == before
            server.answers["/token"] = [(200, {}, {"error": "bad_refresh_token"})]
            with pytest.raises(AuthorizationNeeded, match="bad_refresh_token"):
                await get(server.url, scope)


@pytest.mark.anyio
async def test_case_mcp_10_a_cancelled_caller_loses_no_rotated_token(journal_url: str) -> None:
    """The server has forgotten the old refresh token: what it answers is stored although nobody waits any more."""
    with authority() as server:
        async with serving(journal_url) as services:
            scope = scope_of(services)
            await consented(server.url, scope)
            alpha = await kept_of(server.url, scope)
            server.expire()
            server.hold = threading.Event()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(get, server.url, scope)
                await anyio.to_thread.run_sync(server.holding.wait, 10)
                tasks.cancel_scope.cancel()
                server.hold.set()
            beta = await kept_of(server.url, scope)
            assert beta.version == alpha.version + 1
            server.hold = None
            assert (await get(server.url, scope)).status_code == 200
            assert server.refreshes == 1


async def _claimed_elsewhere(server: Authority, scope: Scope) -> Kept:
    kept = await kept_of(server.url, scope)
    assert await store_of(server.url, scope).claim(kept, "another worker")
    assert not await store_of(server.url, scope).claim(kept, "a third")
    return kept


@pytest.mark.anyio
async def test_case_mcp_10_a_loser_waits_and_takes_what_the_winner_stored(journal_url: str) -> None:
    """Without a request of its own, and without touching what is there."""
    with authority() as server:
        async with serving(journal_url) as services, serving(journal_url) as others:
            scope, other = scope_of(services), scope_of(others)
            await consented(server.url, scope)
            server.expire()
            server.hold = threading.Event()
            ended: list[int] = []

            async def call(one: Scope) -> None:
                ended.append((await get(server.url, one)).status_code)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call, scope)
                await anyio.to_thread.run_sync(server.holding.wait, 10)
                tasks.start_soon(call, other)
                await anyio.wait_all_tasks_blocked()
                server.hold.set()
            assert ended == [200, 200]
            assert server.refreshes == 1


@pytest.mark.anyio
async def test_case_mcp_10_the_claim_of_a_killed_worker_runs_out(journal_url: str) -> None:
    """Until then nobody else renews; then somebody does. What the killed one stores after that is not taken."""
    with authority() as server:
        async with serving(journal_url) as services:
            scope = scope_of(services)
            await consented(server.url, scope)
            server.expire()
            kept = await _claimed_elsewhere(server, scope)
            with anyio.move_on_after(0.3) as waited:
                await get(server.url, scope)
            assert waited.cancelled_caught
            assert server.refreshes == 0
            past = datetime.now(UTC) - timedelta(seconds=1)
            await services.store.write([update(oauth_tokens).values(refreshing_until=past)])
            assert (await get(server.url, scope)).status_code == 200
            beta = await kept_of(server.url, scope)
            assert not await store_of(server.url, scope).replace(kept, kept.grant)
            assert await kept_of(server.url, scope) == beta
            assert (await services.store.read(select(oauth_tokens.c.refreshing_by))) == [(None,)]


@pytest.mark.anyio
@pytest.mark.parametrize("lenient", [True, False])
async def test_case_mcp_10_a_loser_destroys_nothing(sqlite_url: str, lenient: bool) -> None:
    """A worker that stood still too long has its claim taken; what it brings home is not lost to the other's error."""
    with authority() as server:
        server.lenient = lenient
        async with serving(sqlite_url) as services, serving(sqlite_url) as others:
            scope, other = scope_of(services), scope_of(others)
            await consented(server.url, scope)
            alpha = await kept_of(server.url, scope)
            server.expire()
            server.hold = held = threading.Event()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_gets, server, scope, 1, [])
                await anyio.to_thread.run_sync(server.holding.wait, 10)
                server.hold = None
                past = datetime.now(UTC) - timedelta(seconds=1)
                await services.store.write([update(oauth_tokens).values(refreshing_until=past)])
                with pytest.raises(AuthorizationNeeded, match="invalid_grant"):
                    await get(server.url, other)
                assert (await kept_of(server.url, other)).grant.refused == "invalid_grant"
                held.set()
            beta = (await kept_of(server.url, other)).grant
            assert beta.refused is None
            assert beta.access_token != alpha.grant.access_token
            if lenient:
                assert (await get(server.url, other)).status_code == 200
            assert not await store_of(server.url, scope).replace(alpha, alpha.grant)


class _Failing:
    """A store whose writes fail as long as it is told so."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.fails = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def write(self, statements: Sequence[Any]) -> list[int]:
        if self.fails:
            raise LogUnavailable("the database is away")
        return list(await self._store.write(statements))


@pytest.mark.anyio
async def test_a_rotated_token_that_cannot_be_stored_is_stored_later(sqlite_url: str) -> None:
    """The database goes away between the claim and the answer: nothing is lost but the one call."""
    with authority() as server:
        async with serving(sqlite_url) as services:
            services.store = failing = _Failing(services.store)
            scope = scope_of(services)
            await consented(server.url, scope)
            alpha = await kept_of(server.url, scope)
            server.expire()
            server.hold = threading.Event()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_gets, server, scope, 1, [])
                await anyio.to_thread.run_sync(server.holding.wait, 10)
                failing.fails = True
                server.hold.set()
            assert await kept_of(server.url, scope) == alpha
            failing.fails = False
            await services.shared(Grants).aclose()
            assert (await kept_of(server.url, scope)).version == alpha.version + 1
            assert (await get(server.url, scope)).status_code == 200
            assert server.refreshes == 1
