"""``ntfy``: where messages go is the row's alone, what the server says is what is said, texts arrive as they are."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest

from engine.tools.ntfy import Ntfy
from events.errors import Refused
from tests.engine.api.raw_server import answer, raw_server
from tests.engine.tools.outside import calling, error_of, recorded

__all__ = ()

pytestmark = pytest.mark.anyio
TOKEN = "tk_7Hf2AgQdq7mVBoFD37zQVN29RhuMzNIz2"


async def test_a_message_goes_to_the_configured_topic_as_utf_8() -> None:
    with raw_server() as server:
        server.answers = [recorded("ntfy_sent.json")]
        async with calling(Ntfy, server=f"{server.origin}/", topic="harbour", token=TOKEN) as call:
            sent = await call(
                "ntfy_send_message",
                message="Fällig 😀",
                title="Größe 港",
                priority=5,
                tags=["warning", "skull"],
                click="https://harbour.example/x",
                attach="https://harbour.example/f.jpg",
                delay="30m",
            )
            assert sent == {"status_code": 200, "message": "Message sent", "id": "xE73Iyuabi", "time": 1673542291}
            assert (server.last.method, server.last.target) == ("POST", "/")
            assert server.last.header("content-type") == "application/json"
            assert server.last.header("authorization") == f"Bearer {TOKEN}"
            assert json.loads(server.last.body) == {
                "topic": "harbour",
                "message": "Fällig 😀",
                "title": "Größe 港",
                "priority": 5,
                "tags": ["warning", "skull"],
                "click": "https://harbour.example/x",
                "attach": "https://harbour.example/f.jpg",
                "delay": "30m",
            }
            await call("send_message", message="x")
            assert json.loads(server.last.body) == {"topic": "harbour", "message": "x"}
        credentials: list[tuple[dict[str, Any], str | None]] = [
            ({}, None),
            ({"username": "ada", "password": "pä:ss"}, f"Basic {b64encode('ada:pä:ss'.encode()).decode()}"),
        ]
        for config, header in credentials:
            async with calling(Ntfy, server=server.origin, topic="harbour", **config) as call:
                await call("ntfy_send_message", message="x")
                assert server.last.header("authorization") == header


async def test_what_the_server_refuses_is_an_error_and_not_message_sent() -> None:
    with raw_server() as server:
        async with calling(Ntfy, server=server.origin, topic="harbour", token=TOKEN) as call:
            server.answers = [recorded("ntfy_forbidden.json", 403)]
            assert error_of(await call("ntfy_send_message", message="x")) == {
                "status_code": 403,
                "message": "Message not sent: ntfy responded with HTTP status 403: forbidden.",
            }
            for status in (400, 413, 500, 502, 503, 204 + 100):
                server.answers, before = [answer(f"no {TOKEN}".encode(), status)], len(server.received)
                result = await call("ntfy_send_message", message="x")
                assert error_of(result)["status_code"] == status
                assert TOKEN not in repr(result)
                # It may have been published: it is not published twice.
                assert len(server.received) == before + 1
            server.answers = [answer(b'{"code":42901,"http":429,"error":"limit reached"}', 429, Retry_After="0")]
            server.answers.append(recorded("ntfy_sent.json"))
            assert (await call("ntfy_send_message", message="x"))["message"] == "Message sent"
        async with calling(Ntfy, server="http://10.0.0.1", topic="harbour", token=TOKEN) as call:
            error = error_of(await call("ntfy_send_message", message="x"))
            assert error["status_code"] is None
            assert "ntfy cannot be reached or read" in error["message"]


async def test_the_token_goes_to_no_other_server() -> None:
    with raw_server() as server, raw_server() as other:
        for status in (301, 302, 303, 307, 308):
            server.answers = [answer(b"", status, Location=f"{other.origin}/{TOKEN}")]
            async with calling(Ntfy, server=server.origin, topic="harbour", token=TOKEN) as call:
                result = await call("ntfy_send_message", message="x")
                assert "it redirects elsewhere" in error_of(result)["message"]
                assert TOKEN not in repr(result)
        assert other.received == []


async def test_neither_server_nor_topic_is_the_models_to_choose() -> None:
    (action,) = Ntfy.get_actions_metadata(Ntfy.__new__(Ntfy))
    assert {"server_url", "server", "topic", "token"}.isdisjoint(action["parameters"]["properties"])
    assert action["parameters"]["additionalProperties"] is False
    with raw_server() as server, raw_server() as other:
        async with calling(Ntfy, server=server.origin, topic="harbour", token=TOKEN) as call:
            await call("ntfy_send_message", message="x", server_url=other.origin, topic="../evil?x", token="tk_evil")
            assert json.loads(server.last.body) == {"topic": "harbour", "message": "x"}
        assert other.received == []


async def test_what_cannot_be_sent_is_said_and_not_sent() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"message": ""}, '"message" must be text'),
        ({"message": "é" * 2049}, "The message has 4,098 bytes; at most 4,096 are taken."),
        ({"message": "x", "title": "t" * 251}, '"title" has 251 characters'),
        ({"message": "x", "priority": 0}, '"priority" must be a whole number from 1 to 5.'),
        ({"message": "x", "priority": 6}, '"priority" must be a whole number from 1 to 5.'),
        ({"message": "x", "priority": "high"}, '"priority" must be a whole number from 1 to 5.'),
        ({"message": "x", "tags": "a"}, '"tags" must be a list'),
        ({"message": "x", "tags": ["a,b"]}, "A tag must be"),
        ({"message": "x", "click": "javascript:alert(1)"}, '"click" must be an http(s) address or a mailto one.'),
        ({"message": "x", "attach": "mailto:a@b.example"}, '"attach" must be an http(s) address.'),
    ]
    with raw_server() as server:
        good: dict[str, Any] = {"server": server.origin, "topic": "harbour"}
        async with calling(Ntfy, **good) as call:
            for arguments, said in cases:
                assert said in error_of(await call("ntfy_send_message", **arguments))["message"]
            assert "Unknown action" in error_of(await call("ntfy_burn", message="x"))["message"]
        for config, said in (
            ({"topic": "../evil"}, '"topic"'),
            ({"topic": ""}, '"topic"'),
            ({"server": "https://user:secretpw@h/"}, '"server"'),
            ({"server": "https://h/?auth=secretpw"}, '"server"'),
            ({"password": "secretpw"}, '"username"'),
            ({"token": "tk_a\r\nX-Evil: secretpw"}, "Authorization"),
        ):
            async with calling(Ntfy, **{**good, **config}) as call:
                message = error_of(await call("ntfy_send_message", message="x"))["message"]
                assert said in message
                assert "secretpw" not in message
        assert server.received == []


async def test_a_run_sends_no_more_than_it_may() -> None:
    with raw_server() as server:
        server.answers = [recorded("ntfy_sent.json")]
        async with calling(Ntfy, server=server.origin, topic="harbour", max_per_run=2) as call:
            for _ in range(2):
                await call("ntfy_send_message", message="x", run="r1")
            error = error_of(await call("ntfy_send_message", message="x", run="r1"))
            assert "this run has sent 2 of at most 2 messages" in error["message"]
            assert len(server.received) == 2
            server.answers = [answer(b"", 500), answer(b"", 500), recorded("ntfy_sent.json")]
            for _ in range(2):
                error_of(await call("ntfy_send_message", message="x", run="r2"))
            assert (await call("ntfy_send_message", message="x", run="r2"))["status_code"] == 200
            assert (await call.of_user("v")("ntfy_send_message", message="x", run="r1"))["status_code"] == 200


async def test_a_preview_shows_what_would_be_sent_and_no_secret() -> None:
    config: dict[str, Any] = {"topic": "harbour", "token": TOKEN}
    async with calling(Ntfy, **config) as call:
        assert call.preview("ntfy_send_message", message="hä") == (
            "POST / HTTP/1.1\nHost: ntfy.sh\nAccept: application/json\nContent-Type: application/json\n"
            'Authorization: Bearer ***\nContent-Length: 35\n\n{"topic":"harbour","message":"hä"}\n'
        )
        with pytest.raises(Refused, match="message"):
            call.preview("ntfy_send_message")
    async with calling(Ntfy, topic="harbour", username="ada", password="secretpw") as call:
        shown = call.preview("ntfy_send_message", message="x")
        assert "Authorization: Basic ***" in shown
        assert b64encode(b"ada:secretpw").decode() not in shown
