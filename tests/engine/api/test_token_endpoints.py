"""Token endpoints that refuse, or answer what they like; and where a client's secret and its tokens never show."""

from __future__ import annotations

import logging
from base64 import b64encode
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import anyio
import msgspec
import pytest

from engine import Engine, Settings, ToolRow
from engine.api.dry_run import dry_run
from engine.api.row_config import problems_of, wanted_secrets
from engine.credentials import MasterKeys, Vault
from engine.net.policy import NetPolicy
from engine.services import Services
from events import Executed, to_wire
from tests.engine.api.authority import CLIENT, bearers, entry, given, scope_of, two_servers
from tests.engine.api.calls import LOCAL, result_of_call
from tests.engine.api.raw_server import RawServer, answer, raw_server
from tests.engine.staging import call, events_of, staged_engine
from tests.engine.station import Station

__all__ = ()

pytestmark = pytest.mark.anyio

SECRET = CLIENT["key"]
PACKED = b64encode(f"{quote_plus(CLIENT['id'])}:{quote_plus(SECRET)}".encode()).decode()
WRONG = "the tool's owner must correct the client's id and secret"


def refusing(description: str, code: str = "invalid_client", status: int = 401) -> bytes:
    return answer(msgspec.json.encode({"error": code, "error_description": description}), status)


ANSWERS: dict[str, tuple[bytes, str]] = {
    "wrong secret": (refusing("Nobody."), f"answered invalid_client (HTTP 401): Nobody; {WRONG}."),
    "with 200": (refusing("", "invalid_client", 200), f"answered invalid_client (HTTP 200); {WRONG}."),
    "no word": (answer(b"", 401), f"answered HTTP 401; {WRONG}."),
    "scope": (
        refusing("", "invalid_scope", 400),
        "invalid_scope (HTTP 400); the tool's owner must correct the scopes.",
    ),
    "control characters": (
        refusing("a\r\n\x00\x1b[31mb\u202ec\u2028d", "x", 400),
        "answered x (HTTP 400): a [31mb c d.",
    ),
    "no code": (refusing("", "<b>\n", 400), "answered an error (HTTP 400)."),
    "echo": (refusing(f"{SECRET} {quote(SECRET, '')} {PACKED}", "x", 400), "(HTTP 400): *** *** ***."),
    "echo at the cut": (refusing("x" * 295 + SECRET, "x", 400), "x***. Nothing"),
    "long": (refusing("y" * 9000, "x", 400), "y…. Nothing"),
    "HTML": (answer(b"<html>Sign in</html>", 200, "text/html"), "answered HTTP 200 and no token."),
    "nothing": (answer(b"", 200), "answered HTTP 200 and no token."),
    "a list": (answer(b"[]", 200), "answered HTTP 200 and no token."),
    "deep": (answer(b'{"error":' + b"[" * 20_000, 200), "answered HTTP 200 and no token."),
    "no UTF-8": (answer(b'{"error":"\xff"}', 200), "answered HTTP 200 and no token."),
    "huge": (given("t" * 200_000), "larger"),
    "huge error": (answer(b"e" * 200_000, 500), "answered HTTP 500 and no token."),
    "mac": (given(token_type="mac"), "another type than bearer."),
    "odd type": (given(token_type=["bearer"]), "another type than bearer."),
    "two lines": (given("a\r\nX-Evil: 1"), "without one that can be sent."),
    "empty": (given(""), "without one that can be sent."),
    "a number": (given(17), "without one that can be sent."),
    "too long": (given("t" * 9000), "without one that can be sent."),
    "broken off": (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{", "broke off"),
    "no HTTP": (b"SSH-2.0-x\r\n", "broke off"),
}
"""What a token endpoint answers, and what is said of that."""


async def test_whatever_a_token_endpoint_answers_nothing_is_sent_to_the_api() -> None:
    with two_servers() as (authority, api):
        action = {"url": api.origin, "security": [entry(authority)]}
        for case, (response, said) in ANSWERS.items():
            authority.answers = [response]
            result = await result_of_call(action, credentials=CLIENT)
            assert (result.status, result.data["status_code"], result.data["data"]) == ("error", None, None), case
            message = result.data["message"]
            assert message.startswith("No access token: 127.0.0.1"), message
            assert said in message, (case, message)
            assert message.endswith("Nothing was sent to the API."), message
            assert len(message) < 600
            assert message.isprintable()
            assert not any(each in message for each in (*CLIENT.values(), quote_plus(SECRET), PACKED)), case
        assert api.received == []
        with raw_server() as inward:
            authority.answers = [answer(b"", 307, None, Location=f"{inward.origin}/token")]
            result = await result_of_call(action, credentials=CLIENT)
            assert "answered HTTP 307, a redirect, which is not followed. Nothing" in result.data["message"]
            assert inward.received == []
        authority.answers = [answer(b'{"access_token":"t","token_type":"BEARER"}'), answer(b'{"access_token":"u"}')]
        for token in "tu":
            await result_of_call(action, credentials=CLIENT)
            assert bearers(api)[-1] == f"Bearer {token}"


async def test_a_token_endpoint_that_never_ends_takes_no_more_than_the_call_has() -> None:
    with two_servers() as (authority, api):
        authority.holds, authority.answers = True, [b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"]
        action = {"url": api.origin, "security": [entry(authority)]}
        begun = anyio.current_time()
        result = await result_of_call(action, credentials=CLIENT, seconds=0.5)
        assert anyio.current_time() - begun < 5
        assert result.data["message"].startswith("No access token: ")
        assert api.received == []


async def test_where_a_secret_may_not_go() -> None:
    async def resolver(host: str, port: int) -> list[str]:
        return ["93.184.216.34"]

    with two_servers() as (authority, api):
        clear = {"token_url": "http://auth.example/token"}
        for policy, stated, said in (
            (LOCAL, clear, "No access token: the token_url is not encrypted; its owner must use https."),
            (NetPolicy(), {}, "URL validation error: the token_url: 127.0.0.1 is not"),
            (LOCAL, {"token_url": "https://localhost/t"}, "URL validation error: the token_url: localhost is not"),
        ):
            services = Services(policy, resolver=resolver)
            action = {"url": api.origin, "security": [entry(authority, **stated)]}
            try:
                result = await result_of_call(action, credentials=CLIENT, scope=scope_of(services))
            finally:
                await services.aclose()
            assert result.data["message"].startswith(said), result.data["message"]
        assert (authority.received, api.received) == ([], [])


def test_what_an_entry_must_say() -> None:
    def problems(**stated: Any) -> list[str]:
        security = [{"in": "oauth2", "token_url": "https://a.example/t", "client_id": "id", "client_secret": "key"}]
        security[0] |= stated
        return problems_of({"security": security, "actions": {"act": {"url": "https://api.example"}}})

    assert problems() == []
    assert problems(token_url="http://a.example:8080/t?x=1", scopes=["a"], client_auth="body") == []
    for stated, said in (
        ({"token_url": ""}, "must be absolute"),
        ({"token_url": "/token"}, "must be absolute"),
        ({"token_url": "ftp://a.example"}, "must be absolute"),
        ({"token_url": "https://{tenant}.example/t"}, "takes no variables"),
        ({"token_url": "https://a.example/{x}"}, "takes no variables"),
        ({"token_url": "https://u:p@a.example/"}, "user name or password"),
        ({"token_url": "https://a.example/#x"}, "fragment"),
        ({"token_url": "https://a.example/\n"}, "control characters"),
        ({"token_url": "https://a.example:99999/"}, "is not valid"),
        ({"scopes": ["a b"]}, '"a b" is no scope'),
        ({"scopes": "a"}, "scopes"),
        ({"client_id": ""}, "which secret"),
        ({"client_secret": ""}, "which secret"),
        ({"client_auth": "jwt"}, "client_auth"),
    ):
        [problem] = problems(**stated)
        assert said in problem, problem
    twice = [{"in": "bearer", "secret": "k"}, {"in": "oauth2", "token_url": "https://a.example", "client_id": "i"}]
    twice[1]["client_secret"] = "key"
    [problem] = problems_of({"security": twice, "actions": {"act": {"url": "https://api.example"}}})
    assert "two credentials for the Authorization header" in problem
    assert wanted_secrets({"security": twice}) == ("k", "i", "key")


def test_a_dry_run_asks_for_no_token() -> None:
    with two_servers() as (authority, api):
        config = {"security": [entry(authority)], "actions": {"act": {"url": f"{api.origin}/x"}}}
        shown = str(dry_run(ToolRow(id="t1", name="api_tool", user_id="u", config=config), "act", {}))
        assert shown.splitlines()[0] == (
            f"(An access token would be fetched first from {authority.origin}/token, unless one is kept.)"
        )
        assert "\nAuthorization: Bearer ***\n" in shown
        assert (authority.received, api.received) == ([], [])


KEYS = MasterKeys("k1", {"k1": b"1" * 32})
CANARIES = {"id": "canary-client-1f", "key": "canary/se cret+é-2f"}
TOKEN = "canary-token.3f+/="


def forms(secret: str) -> set[str]:
    return {secret, quote(secret, safe=""), quote_plus(secret), b64encode(secret.encode()).decode()}


async def used(engine: Engine, authority: RawServer, api: RawServer, known: set[str], echo: bytes) -> list[Any]:
    """Call an action whose servers say all that they were sent, and return all that is shown of it."""
    shown: list[Any] = []
    for number, (token, response) in enumerate(
        (
            (refusing(" ".join(known)), answer(echo)),
            (given(TOKEN, refresh_token=CANARIES["key"]), answer(echo)),
            (given(TOKEN), answer(echo, 500, X=TOKEN)),
            (given(TOKEN), answer(echo, 401, Location=f"/?t={TOKEN}")),
            (given(TOKEN), f"HTTP/1.1 {TOKEN}\r\n\r\n".encode()),
        )
    ):
        authority.answers, api.answers = [token], [response]
        events = await events_of(engine, call({}, name="act", call_id=f"c{number}"))
        assert isinstance(events[-1], Executed), events
        assert events[-1].status == ("completed" if number == 1 else "error")
        shown += [*events, *map(to_wire, events)]
    shown += [engine, engine.statistics(), await engine.tool_results("m", user_id="u", family="openai")]
    return [*shown, *[await engine.attempt(f"m:c{number}", user_id="u") for number in range(5)]]


async def test_no_canary_of_a_client_or_its_token_is_kept_or_shown_anywhere(
    sqlite_url: str, station: Station, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    caplog.set_level(logging.DEBUG)
    packed = b64encode(f"{quote_plus(CANARIES['id'])}:{quote_plus(CANARIES['key'])}".encode()).decode()
    known = {packed, *forms(CANARIES["id"]), *forms(CANARIES["key"])}
    forbidden = known | forms(TOKEN)
    echo = msgspec.json.encode({"all": " ".join(sorted(forbidden)), TOKEN: f"Bearer {TOKEN}"})
    with two_servers() as (authority, api):
        config = {"security": [entry(authority)], "actions": {"act": {"url": f"{api.origin}/x"}}}
        sealed = Vault(KEYS).seal(CANARIES, owner="u", row_id="t1")
        row = ToolRow(id="t1", name="api_tool", user_id="u", config=config, credentials=sealed)
        settings = Settings(net=LOCAL, master_keys=KEYS)
        async with staged_engine(sqlite_url, rows=[row], settings=settings) as engine:
            shown = await used(engine, authority, api, known, echo)
        assert bearers(api) == [f"Bearer {TOKEN}"] * len(api.received)
        assert len(api.received) >= 4
    kept = b"".join(each.read_bytes() for each in tmp_path.rglob("*") if each.is_file())
    logged = caplog.text + repr([(record.args, record.exc_text) for record in caplog.records])
    for text in (repr(shown), repr(msgspec.json.encode(shown, enc_hook=repr)), station.all_of_it(), logged):
        assert [form for form in forbidden if form in text] == []
    assert [form for form in forbidden if form.encode() in kept] == []
