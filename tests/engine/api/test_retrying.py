"""When a request is sent again, and how long it waits for that."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import anyio
import pytest

from engine.api.retrying import ATTEMPTS, RETRIED, retried, wait_asked_for
from engine.net.errors import BadResponse, Unreachable
from engine.net.reply import Reply
from tests.engine.api.calls import result_of_call
from tests.engine.api.raw_server import answer, raw_server

__all__ = ()

pytestmark = pytest.mark.anyio


def reply(status: int, **headers: str) -> Reply:
    """Return a reply; in the names of headers ``_`` stands for ``-``."""
    told = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Reply(url="", status=status, headers=told, content_type="", charset=None, body=b"")


async def attempts(*outcomes: Reply | Exception, seconds: float = 60.0) -> tuple[Reply | Exception, int]:
    """Return what counts in the end of these outcomes, and how many of them there were."""
    left = list(outcomes)

    async def send() -> Reply:
        outcome = left.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    try:
        last: Reply | Exception = await retried(send, anyio.current_time() + seconds, longest=0.0)
    except (Unreachable, BadResponse) as error:
        last = error
    return last, len(outcomes) - len(left)


async def test_what_is_sent_again() -> None:
    fine, busy = reply(200), reply(503)
    for status in RETRIED:
        assert await attempts(reply(status), fine) == (fine, 2)
    for status in (200, 204, 302, 400, 401, 404, 409, 500, 501):
        assert await attempts(reply(status)) == (reply(status), 1)
    gone, broken = Unreachable("no"), BadResponse("no")
    assert await attempts(gone, busy, fine) == (fine, 3)
    assert await attempts(busy, busy, busy, fine) == (busy, ATTEMPTS)
    assert await attempts(gone, gone, gone, fine) == (gone, ATTEMPTS)
    assert await attempts(broken, fine) == (broken, 1)


async def test_a_wait_beyond_the_deadline_is_not_begun() -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    for stated in ("61", "999999999999", later):
        told = reply(429, Retry_After=stated)
        assert await attempts(told, reply(200)) == (told, 1)
    for stated in ("0", format_datetime(datetime.now(UTC), usegmt=True), "soon", "-1", ""):
        assert await attempts(reply(429, Retry_After=stated), reply(200)) == (reply(200), 2)
    assert await attempts(reply(503), reply(200), seconds=0.0) == (reply(503), 1)


def test_what_a_retry_after_says() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    for stated, seconds in (
        ("120", 120.0),
        (" 7 ", 7.0),
        ("Thu, 01 Jan 2026 00:00:30 GMT", 30.0),
        ("Thu, 01 Jan 2026 00:00:30 -0000", 30.0),
        ("Wed, 31 Dec 2025 00:00:00 GMT", 0.0),
        ("1.5", None),
        ("٣", None),
        ("Thu, 99 Jan 2026", None),
        ("", None),
        (None, None),
    ):
        assert wait_asked_for(stated, now) == seconds


async def test_only_what_may_be_repeated_is_sent_again() -> None:
    busy, fine = answer(b"{}", 503, Retry_After="0"), answer(b"[1]")
    idempotency: dict[str, Any] = {"idempotency_header": "Idempotency-Key"}
    with raw_server() as server:
        for method, action, times in (
            ("GET", {}, 2),
            ("HEAD", {}, 2),
            ("OPTIONS", {}, 2),
            ("PUT", {}, 2),
            ("DELETE", {}, 2),
            ("POST", {}, 1),
            ("PATCH", {}, 1),
            ("POST", {"idempotent": True}, 2),
            ("POST", idempotency, 2),
            ("PATCH", idempotency, 2),
        ):
            server.answers, server.received = [busy, fine], []
            result = await result_of_call({"url": server.origin, "method": method, **action})
            assert len(server.received) == times, method
            assert result.data["status_code"] == (200 if times == 2 else 503)
            assert len({received.header("idempotency-key") for received in server.received}) == 1
        server.answers = [answer(b"{}", 429, Retry_After="3600")]
        result = await result_of_call({"url": server.origin})
        assert result.data["message"] == "HTTP Error 429. The API says when to try again: Retry-After: 3600."
