"""Consent: what is asked of a person and of the servers, and what may go wrong without harm."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx
import pytest

from engine.contract import Scope
from engine.credentials import MasterKeys
from engine.mcp.oauth_errors import AuthorizationFailed, AuthorizationNeeded, AuthorizationUnavailable
from engine.net.allow_list import AllowList
from engine.net.errors import UnsafeUserUrlError
from engine.net.policy import NetPolicy
from events.errors import JournalError
from tests.engine.mcp.oauth.authority import Authority, authority
from tests.engine.mcp.oauth.consents import KEYS, agree, browse, consented, get, kept_of, logged, scope_of, serving


@pytest.mark.anyio
async def test_a_consent_gives_tokens_that_nobody_else_can_read(
    sqlite_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """From nothing to a call that gets through, and one renewal; no secret in any log line or byte of the journal."""
    caplog.set_level(logging.DEBUG)
    with authority() as server:
        async with serving(sqlite_url) as services:
            scope = scope_of(services)
            await consented(server.url, scope, "read, write  admin")
            assert server.asked[:4] == [
                "GET /mcp",
                "GET /.well-known/oauth-protected-resource/mcp",
                "GET /.well-known/oauth-authorization-server",
                "POST /register",
            ]
            (client,) = server.clients.values()
            assert client["client_name"] == "Calljournal of a test"
            assert client["redirect_uris"][0].startswith("http://127.0.0.1:")
            (query,) = server.queries
            assert (query["scope"], query["resource"]) == ("read write admin", server.url)
            assert (await get(server.url, scope)).json()["client"] == client["client_id"]
            server.expire()
            assert (await get(server.url, scope)).status_code == 200
            kept = await kept_of(server.url, scope)
            assert kept.grant.scope == "read write admin"
            shown = f"{kept!r} {scope.services!r} {logged(caplog)}"
            found = [secret for secret in server.issued if secret in shown]
        written = b"".join(path.read_bytes() for path in Path(sqlite_url.removeprefix("sqlite:///")).parent.iterdir())
        assert len(server.issued) >= 6
        assert found == [secret for secret in server.issued if secret.encode() in written] == []


@pytest.mark.anyio
async def test_without_scopes_of_its_own_a_row_asks_for_those_the_server_names(sqlite_url: str) -> None:
    """The challenge's come first; with none anywhere, none is asked for."""
    with authority() as server:
        async with serving(sqlite_url) as services:
            await consented(server.url, scope_of(services), None)
            server.changed["resource"] = {"scopes_supported": ["files", "mail"]}
            server.answers["/mcp"] = [(401, {"WWW-Authenticate": "Bearer"}, {})]
            await consented(server.url, scope_of(services), "")
            server.changed.clear()
            # Not even a 401: the well-known places say everything.
            server.answers["/mcp"] = [(405, {}, {})]
            await consented(server.url, scope_of(services), [])
            assert [query.get("scope") for query in server.queries] == ["all", "files mail", None]


@pytest.mark.anyio
async def test_a_client_with_other_redirect_uris_is_registered_anew(sqlite_url: str) -> None:
    """On another port the stored client and its tokens count as gone; on the same one the client is used again."""
    with authority() as server:
        async with serving(sqlite_url) as services:
            scope = scope_of(services)
            await consented(server.url, scope)
            first = await kept_of(server.url, scope)
            await consented(server.url, scope)
            second = await kept_of(server.url, scope)
            assert len(server.clients) == 2
            assert first.grant.client_metadata["client_id"] != second.grant.client_metadata["client_id"]
            assert first.grant.refresh_token != second.grant.refresh_token
            port = urlsplit(second.grant.client_metadata["redirect_uris"][0]).port
            await consented(server.url, scope, port=port)
            assert len(server.clients) == 2
            assert (await get(server.url, scope)).json()["client"] == second.grant.client_metadata["client_id"]


async def _strange(server: Authority, url: str) -> None:
    """What other pages and programs may send to the callback before the person agrees."""
    (back,) = parse_qs(urlsplit(url).query)["redirect_uri"]
    for target in (
        back,
        f"{back}?code=stolen",
        f"{back}?code=stolen&state=guessed",
        f"{back}?error=access_denied&state=%C3%A9",
        back.replace("/callback", "/favicon.ico"),
    ):
        assert (await browse(target)).status_code in (400, 404), target
    async with httpx.AsyncClient() as other:
        assert (await other.post(back)).status_code == 404
    # One that says nothing, as browsers open them in advance, and one that talks something else.
    async with await anyio.connect_tcp("127.0.0.1", urlsplit(back).port or 0):
        async with await anyio.connect_tcp("127.0.0.1", urlsplit(back).port or 0) as stream:
            await stream.send(b"\x16\x03\x01 not HTTP\r\n\r\n")
        await agree(url)


@pytest.mark.anyio
async def test_only_the_answer_with_the_right_state_counts(sqlite_url: str) -> None:
    """Whatever else comes to the callback is answered and forgotten."""
    with authority() as server:
        async with serving(sqlite_url) as services:

            async def show(url: str) -> None:
                await _strange(server, url)

            await consented(server.url, scope_of(services), show=show)
            assert (await get(server.url, scope_of(services))).status_code == 200


def _answered(path: str, status: int, content: Any) -> Callable[[Authority], None]:
    return lambda server: server.answers.__setitem__(path, [(status, {}, content)])


def _changed(document: str, **members: Any) -> Callable[[Authority], None]:
    return lambda server: server.changed.__setitem__(document, members)


_FAILURES: tuple[tuple[Callable[[Authority], None], type[JournalError], str], ...] = (
    (_answered("/register", 404, {}), AuthorizationFailed, "127.0.0.1 did not register a client (HTTP 404)"),
    (_answered("/register", 503, {}), AuthorizationUnavailable, "cannot register a client now (HTTP 503)"),
    (
        _answered("/register", 400, {"error": "invalid_redirect_uri", "error_description": "canary-echo"}),
        AuthorizationFailed,
        "(invalid_redirect_uri, HTTP 400)",
    ),
    (_answered("/register", 201, {"client_secret": "canary-echo"}), AuthorizationFailed, "its response is none"),
    (_answered("/token", 200, {"refresh_token": "canary-echo"}), AuthorizationFailed, "did not give a token"),
    (_answered("/token", 400, {"error": "canary echo"}), AuthorizationFailed, "did not give a token (HTTP 400)"),
    (_answered("/token", 200, b"\xff canary-echo"), AuthorizationFailed, "did not give a token"),
    (
        _answered("/.well-known/oauth-authorization-server", 502, {}),
        AuthorizationUnavailable,
        "cannot say where its endpoints are now (HTTP 502)",
    ),
    (_changed("server", issuer="http://127.0.0.1:1/other?canary"), AuthorizationFailed, "issuer mismatch"),
    (_changed("resource", resource="http://127.0.0.1:1/mcp"), AuthorizationFailed, "does not match expected"),
    (_changed("server", code_challenge_methods_supported=["plain"]), AuthorizationFailed, "does not support PKCE"),
    (_changed("server", code_challenge_methods_supported=None), AuthorizationFailed, "does not support PKCE"),
    (_changed("resource", authorization_servers=["http://10.0.0.1"]), UnsafeUserUrlError, "not, or not only, at a pub"),
    (_changed("resource", authorization_servers=["http://1.1.1.1"]), AuthorizationFailed, "is not encrypted"),
    (_changed("server", registration_endpoint="http://169.254.169.254/r"), UnsafeUserUrlError, "169.254.169.254"),
    (_changed("server", token_endpoint="https://[::1]/token"), UnsafeUserUrlError, "::1"),
    (_changed("server", authorization_endpoint="https://192.168.0.1/a"), UnsafeUserUrlError, "192.168.0.1"),
    (_changed("server", authorization_endpoint="http://u:p@127.0.0.1/a"), UnsafeUserUrlError, "user name"),
)


@pytest.mark.anyio
async def test_what_goes_wrong_is_one_line_and_leaves_what_was_stored(
    sqlite_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Every request of the flow is judged by the policy, and nothing that a server echoes is shown or logged."""
    caplog.set_level(logging.DEBUG)
    async with serving(sqlite_url) as services:
        scope = scope_of(services)
        with authority() as server:
            await consented(server.url, scope)
            before = await kept_of(server.url, scope)
            for prepare, kind, said in _FAILURES:
                prepare(server)
                with pytest.raises(kind) as caught:
                    await consented(server.url, scope)
                server.answers.clear()
                server.changed.clear()
                text = str(caught.value)
                assert said in text
                assert "\n" not in text
                assert await kept_of(server.url, scope) == before
                assert "canary" not in text + logged(caplog)
            assert (await get(server.url, scope)).status_code == 200


@pytest.mark.anyio
async def test_a_token_that_the_server_turns_down_is_not_stored(sqlite_url: str) -> None:
    """A consent that brings no access is an error at once, not at the first call."""
    with authority() as server:
        async with serving(sqlite_url) as services:
            server.answers["/mcp"] = [(401, {}, {}), (401, {}, {})]
            with pytest.raises(AuthorizationFailed, match=r"turns down the token that it was given \(HTTP 401\)"):
                await consented(server.url, scope_of(services))
            with pytest.raises(AuthorizationNeeded, match="has not been authorized"):
                await get(server.url, scope_of(services))


@pytest.mark.anyio
async def test_a_refusal_and_a_person_who_does_nothing(sqlite_url: str) -> None:
    """Both are one clear line; the page says so too."""
    pages: list[str] = []

    async def refuse(url: str) -> None:
        query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        said = {"error": "access_denied", "error_description": "not\ntoday\x1b[2J", "state": query["state"]}
        pages.append((await browse(f"{query['redirect_uri']}?{httpx.QueryParams(said)}")).text)

    async def nothing(url: str) -> None:
        return

    with authority() as server:
        async with serving(sqlite_url) as services:
            with pytest.raises(AuthorizationFailed) as caught:
                await consented(server.url, scope_of(services), show=refuse)
            assert str(caught.value) == "the authorization was refused (access_denied: not today [2J)"
            assert pages == ["The authorization was refused. You can close this page.\n"]
            with pytest.raises(AuthorizationFailed, match=r"nobody agreed within 0.2 seconds"):
                await consented(server.url, scope_of(services), show=nothing, deadline=0.2)
            async with await anyio.create_tcp_listener(local_host="127.0.0.1") as taken:
                port = taken.extra(anyio.abc.SocketAttribute.local_port)
                with pytest.raises(AuthorizationFailed, match=f"port {port} cannot be listened on"):
                    await consented(server.url, scope_of(services), port=port)


@pytest.mark.anyio
async def test_tokens_cross_no_public_network_in_clear(sqlite_url: str) -> None:
    """Without TLS only where the operator allows it; and nothing is asked of an address that the policy forbids."""
    with authority() as server:
        async with serving(sqlite_url, NetPolicy()) as services:
            with pytest.raises(UnsafeUserUrlError):
                await consented(server.url, scope_of(services))
        async with serving(sqlite_url, NetPolicy(allow=AllowList((f"127.0.0.1:{server.server_address[1]}",)))) as own:
            await consented(server.url, scope_of(own))
            with pytest.raises(AuthorizationFailed, match="is not encrypted"):
                await consented("http://1.1.1.1/mcp", scope_of(own))
        assert server.asked.count("POST /register") == 1


@pytest.mark.anyio
async def test_a_lost_master_key_is_an_error_until_a_person_agrees_again(sqlite_url: str) -> None:
    """What cannot be opened is never taken for nothing by a call, and never in the way of a new consent."""

    async def refused(scope: Scope, url: str) -> str:
        with pytest.raises(JournalError) as caught:
            await get(url, scope)
        return str(caught.value)

    with authority() as server:
        async with serving(sqlite_url) as services:
            await consented(server.url, scope_of(services))
        lost = MasterKeys("k2", {"k2": bytes(32)})
        async with serving(sqlite_url, keys=lost) as services:
            assert "k1" in await refused(scope_of(services), server.url)
            await consented(server.url, scope_of(services))
            assert (await get(server.url, scope_of(services))).status_code == 200
        async with serving(sqlite_url, keys=KEYS) as services:
            assert "k2" in await refused(scope_of(services), server.url)
