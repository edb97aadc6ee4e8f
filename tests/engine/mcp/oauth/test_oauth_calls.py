"""Calls with a stored token: whose it is, where it goes, and that nobody is asked for anything."""

from __future__ import annotations

import anyio
import pytest

from engine.contract import Scope
from engine.mcp.oauth import oauth_auth, oauth_for
from engine.mcp.oauth_errors import AuthorizationNeeded, AuthorizedAnew
from engine.mcp.oauth_grant import canonical_url, parse_scopes
from engine.net.transport2 import client_factory
from engine.services import Services
from events.errors import Refused
from tests.engine.mcp.oauth.authority import authority
from tests.engine.mcp.oauth.consents import NET, consented, get, kept_of, scope_of, serving, store_of


@pytest.mark.anyio
async def test_behaviour_136_a_call_never_waits_for_consent(sqlite_url: str) -> None:
    """Without a token it fails at once, with what to do, and the server hears nothing of it."""
    with authority() as server:
        async with serving(sqlite_url) as services:
            scope = scope_of(services)
            for interactive in (False, True):
                with anyio.fail_after(5), pytest.raises(AuthorizationNeeded) as caught:
                    await oauth_for({"server_url": f"{server.url}?key=canary"}, scope, interactive)
                said = f"{server.url} has not been authorized; run `calljournal tools authorize t1`"
                assert str(caught.value) == said
            with pytest.raises(AuthorizationNeeded):
                await get(server.url, scope)
            assert server.asked == []
            with pytest.raises(Refused, match="no journal to keep its tokens in"):
                await oauth_for({"server_url": server.url}, scope_of(Services(NET)))
            for config in ({}, {"server_url": "ftp://h/"}):
                with pytest.raises(Refused, match="server_url"):
                    await oauth_for(config, scope)


@pytest.mark.anyio
async def test_behaviour_136_an_authorization_that_has_ended_is_an_error_at_once(sqlite_url: str) -> None:
    """One without a refresh token; and one that does not reach far enough."""
    with authority() as server:
        async with serving(sqlite_url) as services:
            scope = scope_of(services)
            tokens = {"access_token": "canary-once", "token_type": "Bearer"}
            server.answers["/token"] = [(200, {}, tokens)]
            server.answers["/mcp"] = [(401, {}, {}), (200, {}, {})]
            await consented(server.url, scope)
            server.asked.clear()
            with pytest.raises(AuthorizationNeeded, match="has an authorization that has ended"):
                await get(server.url, scope)
            assert server.asked == ["GET /mcp"]
            await consented(server.url, scope)
            more = 'Bearer error="insufficient_scope", scope="files:write"'
            server.answers["/mcp"] = [(403, {"WWW-Authenticate": more}, {}), (403, {}, {})]
            with pytest.raises(AuthorizationNeeded, match="asks for the scope 'files:write'; add that to the row"):
                await get(server.url, scope)
            assert (await get(server.url, scope)).status_code == 403


@pytest.mark.anyio
async def test_tokens_are_one_owner_s_and_one_server_s(journal_url: str) -> None:
    """Neither another tenant nor another path of the same host ever has them; a shared row has its owner's."""
    with authority() as server:
        async with serving(journal_url) as services:
            two = f"{server.origin}/two/mcp"
            await consented(server.url, scope_of(services, "ada", "ada"))
            await consented(server.url, scope_of(services, None, None))
            await consented(server.url, scope_of(services, "bob", None))
            await consented(two, scope_of(services, "ada", "ada"))
            clients = [*server.clients]

            async def client(url: str, scope: Scope) -> str:
                return str((await get(url, scope)).json()["client"])

            assert await client(server.url, scope_of(services, "ada", "ada")) == clients[0]
            assert await client(server.url, scope_of(services, "eve", "ada")) == clients[0]
            assert await client(server.url, scope_of(services, "ada", None)) == clients[0]
            assert await client(server.url, scope_of(services, None, None)) == clients[1]
            assert await client(server.url, scope_of(services, "bob", None)) == clients[2]
            assert await client(two, scope_of(services, "ada", "ada")) == clients[3]
            for url, user, owner in ((server.url, "eve", "eve"), (server.url, "ada", "eve"), (two, "bob", None)):
                with pytest.raises(AuthorizationNeeded):
                    await get(url, scope_of(services, user, owner))
            assert await store_of(two, scope_of(services, "ada", "ada")).forget()
            assert not await store_of(two, scope_of(services, "ada", "ada")).forget()
            assert await client(server.url, scope_of(services, "ada", "ada")) == clients[0]


@pytest.mark.anyio
async def test_a_token_goes_to_its_own_origin_only(sqlite_url: str) -> None:
    """A server that names another address for its messages gets none there."""
    with authority() as server, authority() as foreign:
        async with serving(sqlite_url) as services:
            await consented(server.url, scope_of(services))
            assert (await get(foreign.url, scope_of(services), server.url)).json()["echo"] == ""
            assert (await get(f"{server.origin}/else", scope_of(services), server.url)).status_code == 404


@pytest.mark.anyio
async def test_another_worker_s_tokens_are_seen_at_the_next_request(journal_url: str) -> None:
    """Nothing is kept in the process: a renewal is taken over at once, and a new consent ends what began before it."""
    with authority() as server:
        async with serving(journal_url) as services, serving(journal_url) as others:
            scope = scope_of(services)
            await consented(server.url, scope)
            auth = oauth_auth(server.url, scope)
            async with client_factory(services.net)(auth=auth) as client:
                first = (await client.get(server.url)).json()
                server.expire()
                assert (await get(server.url, scope_of(others))).json() == first
                assert (await client.get(server.url)).json() == first
                assert server.refreshes == 1
                await consented(server.url, scope_of(others))
                with pytest.raises(AuthorizedAnew):
                    await client.get(server.url)
            assert (await get(server.url, scope)).json() != first
            assert repr(auth) == f"<StoredAuth {server.url}>"


@pytest.mark.anyio
async def test_a_key_rotation_seals_tokens_anew(sqlite_url: str) -> None:
    """They are sealed for the owner and ``oauth:`` with the URL: whoever rotates keys knows how to open them."""
    from sqlalchemy import select, update

    from engine.credentials import MasterKeys, Vault
    from engine.mcp.token_store import sealed_as
    from engine.schema import oauth_tokens
    from events.keys import tenant_of

    both = MasterKeys("k2", {"k1": bytes(range(32)), "k2": bytes(32)})
    with authority() as server:
        async with serving(sqlite_url) as services:
            await consented(server.url, scope_of(services))
            columns = oauth_tokens.c
            ((tenant, url, sealed),) = await services.store.read(
                select(columns.tenant, columns.server_url, columns.sealed)
            )
            anew = Vault(both).reseal(sealed, owner=tenant_of(tenant), row_id=sealed_as(url))
            await services.store.write([update(oauth_tokens).values(sealed=anew)])
        async with serving(sqlite_url, keys=MasterKeys("k2", {"k2": bytes(32)})) as services:
            assert (await get(server.url, scope_of(services))).status_code == 200
            assert (await kept_of(server.url, scope_of(services))).version == 1


def test_scopes_and_urls_are_read_in_every_form() -> None:
    """A list or a text; commas or blanks; one spelling of a URL, whose path decides."""
    for given in (["a", "b:c"], "a b:c", "a,b:c", " a ,\tb:c,a ", ["a b:c"], ("a,", "b:c")):
        assert parse_scopes(given) == ("a", "b:c"), given
    assert parse_scopes(None) == parse_scopes("") == parse_scopes([]) == ()
    for wrong in ([1], 'a"b', "a\\b", "é"):
        with pytest.raises(Refused, match="oauth_scopes"):
            parse_scopes(wrong)  # type: ignore[arg-type]
    for given, canonical in (
        ("HTTPS://Mcp.Example:443", "https://mcp.example/"),
        ("https://mcp.example/", "https://mcp.example/"),
        ("https://mcp.example/A/b#c", "https://mcp.example/A/b"),
        ("https://mcp.example/a/?k=V", "https://mcp.example/a/?k=V"),
        ("http://mcp.example:8080/a/../b", "http://mcp.example:8080/b"),
        ("https://bücher.example/ü", "https://xn--bcher-kva.example/%C3%BC"),
    ):
        assert canonical_url(given) == canonical
    long = "https://mcp.example/" + "a" * 3000
    for url in (
        "",
        "a.example",
        "ftp://a.example/",
        "https://u:p@a.example/",
        "https:///x",
        "http://[",
        "http://xn--a",
        long,
    ):
        with pytest.raises(Refused, match="server_url"):
            canonical_url(url)
