"""``telegram``: the owner's chats only, long texts in whole parts, what Telegram says, and never the token."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from engine.messaging.parts import parted, units
from engine.tools.telegram import Telegram
from events.errors import Refused
from tests.engine.api.raw_server import RawServer, answer, raw_server
from tests.engine.tools.outside import calling, error_of, recorded

__all__ = ()

pytestmark = pytest.mark.anyio
TOKEN = "123456789:AAzq7-Hf2_secretsecretsecretsecret"
FAMILY = "👩\u200d👩\u200d👧"


def at(server: RawServer, **config: Any) -> dict[str, Any]:
    """Return the settings of a row that sends to the test's server."""
    return {"server": server.origin, "token": TOKEN, "chat_id": "-1001234567890", **config}


async def test_texts_and_images_go_to_the_configured_chat() -> None:
    with raw_server() as server:
        server.answers = [recorded("telegram_sent.json")]
        async with calling(Telegram, **at(server, chats=["@harbour_news", "42"])) as call:
            sent = await call("telegram_send_message", text="*not bold* _a_ [x](y)")
            assert (sent.status, sent.data) == (
                "completed",
                {"status_code": 200, "message": "Message sent", "message_ids": [41]},
            )
            assert (server.last.method, server.last.target) == ("POST", f"/bot{TOKEN}/sendMessage")
            assert json.loads(server.last.body) == {"chat_id": "-1001234567890", "text": "*not bold* _a_ [x](y)"}
            assert call.noted == {"http.response.status_code": 200}
            await call("send_message", text="x", chat_id="@harbour_news")
            assert json.loads(server.last.body)["chat_id"] == "@harbour_news"
            image = "https://h.example/a%20b.jpg"
            sent = await call("telegram_send_image", image_url=image, caption="é")
            assert sent.data["message"] == "Image sent"
            assert server.last.target == f"/bot{TOKEN}/sendPhoto"
            assert json.loads(server.last.body) == {
                "chat_id": "-1001234567890",
                "photo": image,
                "caption": "é",
            }


async def test_markdown_is_shown_as_such_and_needs_no_escaping() -> None:
    with raw_server() as server:
        server.answers = [recorded("telegram_sent.json")]
        async with calling(Telegram, **at(server)) as call:
            await call("telegram_send_message", text="**😀 bold** 1 < 2 & a_b! `c*d`", parse_mode="Markdown")
            body = json.loads(server.last.body)
            assert "parse_mode" not in body
            assert body["text"] == "😀 bold 1 < 2 & a_b! c*d"
            assert body["entities"] == [
                {"type": "bold", "offset": 0, "length": 7},
                {"type": "code", "offset": 21, "length": 3},
            ]
            await call("telegram_send_message", text=f"**{'wort ' * 999}wort**", parse_mode="Markdown")
            parts = [json.loads(each.body) for each in server.received[1:]]
            assert len(parts) == 2
            assert "".join(part["text"] for part in parts) == "wort " * 999 + "wort"
            for part in parts:
                assert part["entities"] == [{"type": "bold", "offset": 0, "length": units(part["text"])}]


@pytest.mark.parametrize(
    "text", ["1. " * 13_000, "> - " * 10_000, "$" * 40_000, "+\t" * 20_000], ids=lambda text: text[:3].strip()
)
async def test_markdown_that_would_fill_the_memory_is_refused(text: str) -> None:
    """The library makes hundreds of megabytes of some, and takes ten seconds for others."""
    with raw_server() as server:
        server.answers = [recorded("telegram_sent.json")]
        async with calling(Telegram, **at(server)) as call:
            sent = await call("telegram_send_message", text=text, parse_mode="Markdown")
            assert "too intricate" in error_of(sent)["message"]
            nested = "- " * 15 + "a\n" + "-" * 40 + "\n> > x costs $5"
            assert (await call("telegram_send_message", text=nested, parse_mode="Markdown")).data["message_ids"] == [41]
        assert len(server.received) == 1


async def test_long_texts_are_parted_between_what_readers_see() -> None:
    for text, most, parts in (
        ("short", 10, ["short"]),
        ("one two three", 8, ["one two ", "three"]),
        ("para one\n\npara two", 12, ["para one\n\n", "para two"]),
        ("line one\nline two", 12, ["line one\n", "line two"]),
        ("a\nbcdefghijklmn", 8, ["a\nbcdefg", "hijklmn"]),
        ("😀" * 3, 4, ["😀😀", "😀"]),
        ("😀" * 3, 5, ["😀😀", "😀"]),
        (FAMILY * 2, 12, [FAMILY, FAMILY]),
        ("xe\u0301", 2, ["x", "e\u0301"]),
        (FAMILY, 4, ["👩\u200d", "👩\u200d", "👧"]),
        (" \n ", 10, []),
    ):
        assert [part for part, _ in parted(text, most)] == parts, text
        assert all(units(part) <= most for part in parts)
    for span, shares in (
        ({"offset": 0, "length": 6}, [(0, 4), (0, 2)]),
        ({"offset": 4, "length": 2}, [None, (0, 2)]),
        ({"offset": 2, "length": 2}, [(2, 2), None]),
    ):
        halves = parted("😀" * 3, 4, [{"type": "bold", **span}])
        wanted = [[] if s is None else [{"type": "bold", "offset": s[0], "length": s[1]}] for s in shares]
        assert [entities for _, entities in halves] == wanted


async def test_a_failure_is_told_as_telegram_tells_it() -> None:
    moved = b'{"ok":false,"error_code":400,"description":"Bad Request: group chat was upgraded",'
    moved += b'"parameters":{"migrate_to_chat_id":-1009}}'
    with raw_server() as server:
        async with calling(Telegram, **at(server)) as call:
            for response, status, said in (
                (recorded("telegram_no_chat.json", 400), 400, "400: Bad Request: chat not found."),
                (answer(moved, 400), 400, "upgraded; the group has become the chat -1009, which its owner must"),
                (answer(b'{"ok":false,"description":"odd"}'), 200, "200: odd."),
                (answer(b"<html>bad gateway", 502), 502, "502: <html>bad gateway."),
                (answer(b"[]"), 200, "200: []."),
                (answer(b"", 302, Location="https://evil.example/"), 302, "it redirects elsewhere"),
            ):
                server.answers, before = [response], len(server.received)
                error = error_of(await call("telegram_send_message", text="x"))
                assert error["status_code"] == status
                assert error["message"].startswith("Message not sent: Telegram responded with HTTP status ")
                assert said in error["message"]
                assert len(server.received) == before + 1


async def test_retry_after_is_waited_for_and_parts_sent_are_counted() -> None:
    with raw_server() as server:
        async with calling(Telegram, **at(server)) as call:
            server.answers = [recorded("telegram_limited.json", 429), recorded("telegram_sent.json")]
            assert (await call("telegram_send_message", text="x")).data["message_ids"] == [41]
            assert len(server.received) == 2
            server.answers = [recorded("telegram_limited.json", 429)]
            error = error_of(await call("telegram_send_message", text="x", seconds=0.5))
            assert error["message"].endswith("Too Many Requests: retry after 1. Retry-After: 1.")
            server.answers = [recorded("telegram_sent.json"), recorded("telegram_no_chat.json", 400)]
            server.received = []
            error = error_of(await call("telegram_send_message", text="word " * 2000))
            assert error["message_ids"] == [41]
            assert error["message"].startswith("1 of 3 messages sent, then: Telegram responded with HTTP status 400")
            assert len(server.received) == 2


async def test_what_cannot_be_sent_is_said_and_not_sent() -> None:
    cases: list[tuple[str, dict[str, Any], str]] = [
        ("telegram_send_message", {"text": ""}, '"text" must be text'),
        ("telegram_send_message", {"text": " \n"}, '"text" must be text'),
        (
            "telegram_send_message",
            {"text": "x" * 4096 * 10 + "y"},
            "The text would be 11 messages; at most 10",
        ),
        ("telegram_send_message", {"text": "x", "parse_mode": "HTML"}, '"parse_mode" must be one of Markdown.'),
        (
            "telegram_send_message",
            {"text": "x", "chat_id": "666"},
            'The chat "666" is none of those',
        ),
        ("telegram_send_image", {"image_url": "file:///etc/passwd"}, '"image_url" must be an http(s) address'),
        ("telegram_send_image", {"image_url": "https://u:p@h.example/"}, '"image_url" must be an http(s) address'),
        (
            "telegram_send_image",
            {"image_url": "https://h/", "caption": "😀" * 513},
            "The caption has 1,026",
        ),
        ("telegram_burn", {}, "Unknown action"),
    ]
    with raw_server() as server:
        async with calling(Telegram, **at(server)) as call:
            for action, arguments, said in cases:
                assert said in error_of(await call(action, **arguments))["message"]
        for config, said in (
            ({"chat_id": ""}, "has no chat to send to"),
            ({"chat_id": "../x"}, "neither a number nor the @name"),
            ({"token": "secretsecret/../x"}, "no token of a Telegram bot"),
            ({"token": f"{TOKEN}/"}, "no token of a Telegram bot"),
            ({"token": ""}, "no token of a Telegram bot"),
        ):
            async with calling(Telegram, **at(server, **config)) as call:
                result = await call("telegram_send_message", text="x")
                assert said in error_of(result)["message"]
                assert "secretsecret" not in repr(result)
        assert server.received == []


async def test_a_run_sends_no_more_than_it_may_parts_counted() -> None:
    with raw_server() as server:
        server.answers = [recorded("telegram_sent.json")]
        async with calling(Telegram, **at(server, max_per_run=3)) as call:
            two, image = "word " * 1500, "https://h.example/i"
            assert (await call("telegram_send_message", text=two, run="r")).status == "completed"
            error = error_of(await call("telegram_send_message", text=two, run="r"))
            assert "has sent 2 of at most 3" in error["message"]
            assert (await call("telegram_send_image", image_url=image, run="r")).status == "completed"
            error = error_of(await call("telegram_send_message", text="x", run="r"))
            assert "has sent 3 of at most 3" in error["message"]


async def test_the_token_is_nowhere_but_in_the_request(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    echo = answer(json.dumps({"ok": False, "description": f"bad {TOKEN} /bot{TOKEN}/ {TOKEN[10:]}"}).encode(), 404)
    with raw_server() as server:
        results = []
        for response in (
            echo,
            answer(f"no {TOKEN}".encode(), 500),
            answer(f'{{"ok":true,"result":"{TOKEN}"}}'.encode()),
        ):
            server.answers = [response]
            async with calling(Telegram, **at(server)) as call:
                results.append(await call("telegram_send_message", text="x"))
                assert TOKEN not in call.preview("telegram_send_message", text="x" * 5000)
                assert TOKEN not in repr([call.noted, call.services])
        for gone in ("http://127.0.0.1:1", "http://10.0.0.1", "https://nothing.invalid"):
            async with calling(Telegram, **{**at(server), "server": gone}) as call:
                results.append(await call("telegram_send_message", text="x", seconds=0.5))
    assert "bad *** /bot***/ ***" in repr(results[0])
    assert "Telegram cannot be reached or read" in repr(results[-1])
    for text in (repr(results), caplog.text, *(repr(vars(record)) for record in caplog.records)):
        assert TOKEN not in text
        assert "secretsecret" not in text


async def test_a_preview_shows_every_part() -> None:
    async with calling(Telegram, token=TOKEN, chat_id="5") as call:
        shown = call.preview("telegram_send_message", text="word " * 1000)
        assert shown.count("POST /bot***/sendMessage HTTP/1.1\nHost: api.telegram.org\n") == 2
        with pytest.raises(Refused, match="none of those"):
            call.preview("telegram_send_message", text="x", chat_id="6")
