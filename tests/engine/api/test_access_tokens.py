"""Access tokens of OAuth 2 clients: fetched once, kept for their row, sent, given up when they are worth nothing."""

from __future__ import annotations

from base64 import b64encode
from functools import partial
from typing import Any
from urllib.parse import parse_qs, quote_plus

import anyio
import msgspec
import pytest
from anyio.lowlevel import checkpoint

from engine.api.client_credentials import ClientCredentials
from engine.api.token_request import DEFAULT_LIFETIME, LONGEST_LIFETIME, NoToken, Token, fetched
from engine.api.tokens import MARGIN, Tokens
from tests.engine.api.authority import CLIENT, bearers, entry, given, scope_of, serving, two_servers
from tests.engine.api.calls import result_of_call
from tests.engine.api.raw_server import RawServer, answer

__all__ = ()

pytestmark = pytest.mark.anyio

UNAUTHORIZED = answer(b'{"error":"who?"}', 401)


def client_of(authority: RawServer, **more: Any) -> ClientCredentials:
    """Return the client's credentials for a token endpoint."""
    facts = {"token_url": f"{authority.origin}/token", "client_id": CLIENT["id"], "client_secret": CLIENT["key"]}
    return msgspec.convert({**facts, **more}, ClientCredentials)


def soon() -> float:
    return anyio.current_time() + 20


async def test_a_token_is_asked_for_sent_and_kept() -> None:
    with two_servers() as (authority, api):
        packed = b64encode(f"{quote_plus(CLIENT['id'])}:{quote_plus(CLIENT['key'])}".encode()).decode()
        more = {"scopes": ["a:read", "b"], "audience": "https://a.example", "resource": "urn:r"}
        asked = {"scope": ["a:read b"], "audience": ["https://a.example"], "resource": ["urn:r"]}
        own = {"client_id": [CLIENT["id"]], "client_secret": [CLIENT["key"]]}
        for stated, header, fields in (
            ({}, f"Basic {packed}", {}),
            ({"client_auth": "body", **more}, None, {**own, **asked}),
            (more, f"Basic {packed}", asked),
        ):
            authority.received, api.received = [], []
            action = {"url": f"{api.origin}/x", "method": "POST", "security": [entry(authority, **stated)]}
            async with serving() as services:
                for _ in range(3):
                    result = await result_of_call(action, credentials=CLIENT, scope=scope_of(services))
                    assert (result.status, result.data["data"]) == ("completed", {})
                assert "token-1" not in repr([services, services.shared(Tokens)])
            (request,) = authority.received
            assert (request.method, request.target, request.header("authorization")) == ("POST", "/token", header)
            assert request.header("content-type") == "application/x-www-form-urlencoded"
            assert parse_qs(request.body.decode()) == {"grant_type": ["client_credentials"], **fields}
            assert bearers(api) == ["Bearer token-1"] * 3


async def test_a_token_is_kept_until_shortly_before_its_end() -> None:
    now = [0.0]
    with two_servers() as (authority, _):
        client = client_of(authority)
        async with serving() as services:
            tokens, scope = Tokens(services, clock=lambda: now[0]), scope_of(services)
            first = await tokens.usable(scope, client, soon())
            now[0] = 3600 - MARGIN - 1
            assert await tokens.usable(scope, client, soon()) == msgspec.structs.replace(first, is_fresh=False)
            now[0] += 2
            assert (await tokens.usable(scope, client, soon())).is_fresh
            for stated, lifetime in (
                (60, 60.0),
                ("60", 60.0),
                (0.5, 1.0),
                (0, 1.0),
                (-5, 1.0),
                (10**15, LONGEST_LIFETIME),
                (1e308, LONGEST_LIFETIME),
                ("9" * 400, DEFAULT_LIFETIME),
                (10**400, LONGEST_LIFETIME),
                (None, DEFAULT_LIFETIME),
                ("soon", DEFAULT_LIFETIME),
                (True, DEFAULT_LIFETIME),
                ([1], DEFAULT_LIFETIME),
            ):
                authority.answers = [given(expires_in=stated)]
                token = await fetched(services, client, soon())
                assert token.lifetime == lifetime, stated
                assert "token-1" not in repr(token)


async def test_calls_that_come_together_fetch_one_token() -> None:
    with two_servers() as (authority, api):
        action = {"url": api.origin, "security": [entry(authority)]}
        async with serving() as services:

            async def one() -> None:
                result = await result_of_call(action, credentials=CLIENT, scope=scope_of(services), seconds=60)
                assert result.status == "completed"

            async with anyio.create_task_group() as group:
                for _ in range(100):
                    group.start_soon(one)
            assert len(authority.received) == 1
            assert bearers(api) == ["Bearer token-1"] * 100


async def test_those_who_wait_share_a_refusal() -> None:
    with two_servers() as (authority, _):
        authority.answers = [answer(b'{"error":"invalid_client"}', 401)]
        said: list[str] = []
        async with serving() as services:

            async def one() -> None:
                with pytest.raises(NoToken) as caught:
                    await services.shared(Tokens).usable(scope_of(services), client_of(authority), soon())
                said.append(str(caught.value))

            async with anyio.create_task_group() as group:
                for _ in range(50):
                    group.start_soon(one)
            assert len(authority.received) == 1
            assert set(said) == {said[0]}
            # It is not kept: who comes later asks.
            authority.answers = [given()]
            assert await services.shared(Tokens).usable(scope_of(services), client_of(authority), soon())


async def test_a_caller_who_goes_leaves_the_asking_to_the_next() -> None:
    with two_servers() as (authority, _):
        never = b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"
        authority.holds, authority.answers = True, [never, never, given()]
        found: list[Token] = []
        async with serving() as services:
            tokens, scope = services.shared(Tokens), scope_of(services)

            async def wait() -> None:
                found.append((await tokens.usable(scope, client_of(authority), soon())).token)

            async def impatient() -> None:
                with pytest.raises(NoToken, match=r"longer|deadline"):
                    await tokens.usable(scope, client_of(authority), anyio.current_time() + 0.3)

            async with anyio.create_task_group() as group:
                first = anyio.CancelScope()

                async def cancelled() -> None:
                    with first:
                        await tokens.usable(scope, client_of(authority), soon())

                group.start_soon(cancelled)
                while not authority.received:
                    await checkpoint()
                group.start_soon(impatient)
                await anyio.wait_all_tasks_blocked()
                group.start_soon(wait)
                group.start_soon(wait)
                await anyio.wait_all_tasks_blocked()
                first.cancel()
            assert [token.value for token in found] == ["token-1", "token-1"]
            assert len(authority.received) == 3


async def test_a_token_goes_to_nobody_else() -> None:
    with two_servers() as (authority, _):
        async with serving() as services:
            tokens, client = services.shared(Tokens), client_of(authority)
            for number in range(2):
                for scope, credentials in (
                    (scope_of(services), client),
                    (scope_of(services, owner="w"), client),
                    (scope_of(services, tool_id="t2"), client),
                    (scope_of(services, owner=None, user="a"), client),
                    (scope_of(services, owner=None, user="b"), client),
                    (scope_of(services, owner=None, user=None), client),
                    (scope_of(services), client_of(authority, client_secret="other")),
                    (scope_of(services), client_of(authority, client_id="other")),
                    (scope_of(services), client_of(authority, scopes=["a"])),
                    (scope_of(services), client_of(authority, audience="a")),
                    (scope_of(services), client_of(authority, resource="a")),
                    (scope_of(services), client_of(authority, client_auth="body")),
                    (scope_of(services), client_of(authority, token_url=f"{authority.origin}/other")),
                ):
                    assert (await tokens.usable(scope, credentials, soon())).is_fresh == (number == 0)
            assert len(authority.received) == 13
            # Whoever calls a row of another's has its owner's.
            assert not (await tokens.usable(scope_of(services, user="guest"), client, soon())).is_fresh


async def test_a_token_is_masked_in_whatever_its_row_s_calls_bring() -> None:
    with two_servers() as (authority, api):
        api.answers = [answer(b'["token-1"]')]
        for scope_given, shown in ((scope_of, "***"), (partial(scope_of, tool_id="t2"), "token-1")):
            async with serving() as services:
                first = {"url": api.origin, "security": [entry(authority)]}
                result = await result_of_call(first, credentials=CLIENT, scope=scope_of(services))
                assert result.data["data"] == ["***"]
                result = await result_of_call({"url": api.origin}, scope=scope_given(services))
                assert result.data["data"] == [shown]


async def test_what_a_401_does() -> None:
    fine, note = answer(b"[1]"), "HTTP Error 401. The access token was not accepted; the next call asks for another."
    key = {"idempotency_header": "Idempotency-Key"}
    for method, more, kept, refusals, sends, asks, status in (
        ("GET", {}, True, 1, 2, 1, 200),
        ("HEAD", {}, True, 1, 2, 1, 200),
        ("PUT", {}, True, 1, 2, 1, 200),
        ("POST", key, True, 1, 2, 1, 200),
        ("POST", {}, True, 1, 1, 0, 401),
        ("PATCH", {}, True, 1, 1, 0, 401),
        ("GET", {}, True, 9, 2, 1, 401),
        ("GET", {}, False, 9, 1, 1, 401),
        ("POST", {}, False, 9, 1, 1, 401),
    ):
        with two_servers() as (authority, api):
            action: dict[str, Any] = {"url": api.origin, "method": method, "security": [entry(authority)], **more}
            async with serving() as services:
                scope = scope_of(services)
                if kept:
                    await result_of_call(action, credentials=CLIENT, scope=scope)
                api.received, authority.received = [], []
                api.answers, authority.answers = [*[UNAUTHORIZED] * refusals, fine], [given("token-2")]
                result = await result_of_call(action, credentials=CLIENT, scope=scope)
                at = (method, more, kept)
                assert (len(api.received), len(authority.received), result.data["status_code"]) == (
                    sends,
                    asks,
                    status,
                ), at
                assert (result.data["message"] == note) == (status == 401), at
                # The next call has another token, whatever became of this one.
                api.answers = [fine]
                result = await result_of_call(action, credentials=CLIENT, scope=scope)
                assert (result.data["status_code"], bearers(api)[-1]) == (200, "Bearer token-2")


async def test_where_no_other_token_is_given_the_401_is_the_result() -> None:
    with two_servers() as (authority, api):
        action = {"url": api.origin, "security": [entry(authority)]}
        async with serving() as services:
            await result_of_call(action, credentials=CLIENT, scope=scope_of(services))
            api.answers, authority.answers = [UNAUTHORIZED], [answer(b'{"error":"invalid_client"}', 401)]
            result = await result_of_call(action, credentials=CLIENT, scope=scope_of(services))
        assert (result.status, result.data["status_code"], result.data["data"]) == ("error", 401, {"error": "who?"})
        assert "there is no other. No access token: 127.0.0.1 answered invalid_client" in result.data["message"]
        assert len(api.received) == 2
