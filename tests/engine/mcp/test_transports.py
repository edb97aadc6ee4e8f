"""The two transports on the wire: streams cut anywhere, servers that redirect, break off, or make no sense."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import AsyncIterator, Callable
from http.server import BaseHTTPRequestHandler
from typing import Any

import anyio
import anyio.to_thread
import httpx2
import pytest

from engine.mcp.errors import McpError, NotAnswered
from engine.mcp.event_stream import Event, EventStream
from engine.mcp.server import Server
from engine.mcp.session import Session
from engine.net import AllowList, NetPolicy, ResponseTooLarge
from engine.services import Services
from events import Executed
from tests.engine.mcp.contexts import tool_context
from tests.engine.mcp.scripted_server import scripted_server
from tests.engine.mcp.serving import LOCAL, U, mcp_engine, mcp_row
from tests.engine.mcp.test_listing import tool_for
from tests.engine.staging import call, outcome_of
from tests.engine.web_server import Page, WebServer, web_server

pytestmark = pytest.mark.anyio


class Pieces(httpx2.AsyncByteStream):
    def __init__(self, body: bytes, size: int) -> None:
        self.body, self.size, self.closed = body, size, False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for start in range(0, len(self.body), self.size):
            yield self.body[start : start + self.size]

    async def aclose(self) -> None:
        self.closed = True


BODY = (
    "\ufeff: a comment\r\nevent: endpoint\r\ndata: /post\r\n\r\n"
    "id: 1\rretry: 50\rdata: one\rdata: two\r\r"
    "data:no space\nignored: x\nnothing\n\n"
    "id: 2\nretry: soon\ndata: Blåbær 🫐\n\n"
    "data: never ended"
).encode()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
async def test_events_are_the_same_wherever_the_stream_is_cut(size: int) -> None:
    pieces = Pieces(BODY, size)
    async with EventStream(httpx2.Response(200, stream=pieces), 1000) as events:
        found = [event async for event in events if event.data]
    assert found == [
        Event("endpoint", "/post", "", None),
        Event("message", "one\ntwo", "1", 50),
        Event("message", "no space", "1", None),
        Event("message", "Blåbær 🫐", "2", None),
    ]
    assert pieces.closed


async def test_an_event_that_is_too_large_is_none_whether_it_ends_or_not() -> None:
    for body in (b"data: " + b"x" * 2000 + b"\n\n", b"data: x\n" * 2000, b"data\n" * 2000, b"y" * 2000):
        async with EventStream(httpx2.Response(200, stream=Pieces(body, 100)), 1000) as events:
            with pytest.raises(ResponseTooLarge):
                await anext(events)


async def test_a_long_line_costs_no_more_in_small_pieces() -> None:
    pieces = Pieces(b"data: " + b"x" * (8 << 20) + b"\n\n", 1000)
    began = time.process_time()
    async with EventStream(httpx2.Response(200, stream=pieces), 16 << 20) as events:
        assert len((await anext(events)).data) == 8 << 20
    assert time.process_time() - began < 5, "joined anew for each piece it takes a minute"


async def test_a_server_that_asks_without_end_is_answered_so_many_times_at_once() -> None:
    with scripted_server() as server:
        server.notices = [{"jsonrpc": "2.0", "id": f"p{number}", "method": "ping"} for number in range(500)]
        async with mcp_engine(mcp_row(server.url)) as engine:
            prepared = await engine.prepare_tools_for_llm(U)
            (name,) = [name for name, (tool_id, _) in prepared.names.items() if tool_id == "t1"]
            ended = await outcome_of(engine, call({"bay": 1}, name=name), U)
            assert isinstance(ended, Executed)

            def answers() -> int:
                return sum(str(each.number).startswith("p") for each in server.asked)

            assert await anyio.to_thread.run_sync(server.until, lambda: answers() >= 64)
        assert answers() == 64


def answered(result: dict[str, Any], **more: Any) -> Callable[[Any], bytes]:
    return lambda number: json.dumps({"jsonrpc": "2.0", "id": number, "result": result, **more}).encode()


INITIALIZED = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "x", "version": "1"},
}
ANSWER = answered({"content": [{"type": "text", "text": "seen"}]})


def mcp_page(answer: Callable[[BaseHTTPRequestHandler, Any], None]) -> Callable[[BaseHTTPRequestHandler], None]:
    """A page that is a server up to the call of a tool, which a test answers."""

    def page(request: BaseHTTPRequestHandler) -> None:
        server = request.server
        assert isinstance(server, WebServer)
        asked = server.asked[-1]
        content = json.loads(asked.body) if asked.body else {}
        method, number = content.get("method"), content.get("id")
        if method == "initialize":
            send(request, 200, answered(INITIALIZED)(number), {"Mcp-Session-Id": "s"})
        elif method == "tools/call" or asked.method == "GET":
            answer(request, number)
        elif number is None:
            send(request, 202)
        else:
            send(request, 400)

    return page


def send(
    request: BaseHTTPRequestHandler, status: int, body: bytes = b"", headers: dict[str, str] | None = None
) -> None:
    request.send_response(status)
    stated = {"Content-Type": "application/json", "Content-Length": str(len(body)), **(headers or {})}
    for name, value in stated.items():
        request.send_header(name, value)
    request.end_headers()
    request.wfile.write(body)


async def called(url: str, **config: Any) -> Any:
    return (await tool_for(url, **config).execute_action("look", tool_context(), bay=1)).data


ODD: list[tuple[Callable[[BaseHTTPRequestHandler, Any], None], str]] = [
    (lambda request, number: send(request, 202), "does not speak the protocol as expected; it may have had its effect"),
    (lambda request, number: send(request, 200, b"{"), "does not speak the protocol"),
    (lambda request, number: send(request, 200, b"[1, null]"), "does not speak the protocol"),
    (lambda request, number: send(request, 200, b"<p>", {"Content-Type": "text/html"}), "does not speak the protocol"),
    (lambda request, number: send(request, 301, b"", {"Location": "/other"}), "HTTP 301); nothing was done"),
    (lambda request, number: send(request, 307, b"", {"Location": "https://e.com/"}), "HTTP 307); nothing was done"),
    (lambda request, number: send(request, 307, b"", {"Location": "/mcp"}), "HTTP 307); nothing was done"),
    (lambda request, number: send(request, 200, b"{}", {"Content-Length": "99"}), "it may have had its effect"),
    (lambda request, number: send(request, 503), "failed (HTTP 503); it may have had its effect"),
]


@pytest.mark.parametrize(("answer", "expected"), ODD)
async def test_answers_that_are_none_end_the_call_with_what_is_known(
    answer: Callable[[BaseHTTPRequestHandler, Any], None], expected: str
) -> None:
    with web_server({"/mcp": mcp_page(answer)}) as server:
        assert expected in (await called(f"http://127.0.0.1:{server.port}/mcp"))["error"]


async def test_answers_come_in_forms_that_servers_have() -> None:
    def stream(*events: str) -> Callable[[BaseHTTPRequestHandler, Any], None]:
        def answer(request: BaseHTTPRequestHandler, number: Any) -> None:
            whole = "".join(events).replace("ANSWER", ANSWER(number).decode())
            send(request, 200, whole.encode(), {"Content-Type": "Text/Event-Stream; charset=utf-8"})

        return answer

    forms = [
        lambda request, number: send(request, 200, ANSWER(str(number)), {"Content-Type": "application/json; x=y"}),
        lambda request, number: send(request, 200, b"[" + ANSWER(number) + b"]"),
        lambda request, number: send(request, 200, ANSWER(None)),
        stream("id: 1\ndata:\n\n", "event: message\ndata: ANSWER\n\n", "data: left unread\n\n"),
        stream("event: ping\ndata: x\n\ndata: not json\n\ndata: ANSWER\n\n"),
    ]
    for form in forms:
        with web_server({"/mcp": mcp_page(form)}) as server:
            data = await called(f"http://127.0.0.1:{server.port}/mcp")
            assert data == {"content": [{"type": "text", "text": "seen"}]}


async def test_a_redirect_within_the_origin_that_keeps_the_message_is_followed() -> None:
    def moved(request: BaseHTTPRequestHandler) -> None:
        send(request, 307, b"", {"Location": "/mcp/"})

    pages = {"/mcp": moved, "/mcp/": mcp_page(lambda request, number: send(request, 200, ANSWER(number)))}
    with web_server(pages) as server:
        data = await called(f"http://127.0.0.1:{server.port}/mcp", auth_type="bearer", bearer_token="t0ken")
        assert data["content"][0]["text"] == "seen"
        assert {each.headers.get("authorization") for each in server.asked} == {"Bearer t0ken"}


async def test_a_stream_that_breaks_off_is_taken_up_where_it_was() -> None:
    def answer(request: BaseHTTPRequestHandler, number: Any) -> None:
        server = request.server
        assert isinstance(server, WebServer)
        events = {"Content-Type": "text/event-stream"}
        if server.asked[-1].method == "GET":
            if "last-event-id" not in server.asked[-1].headers:
                send(request, 405)
                return
            number = next(json.loads(each.body)["id"] for each in server.asked if b"tools/call" in each.body)
            send(request, 200, b"id: 8\ndata: " + ANSWER(number) + b"\n\n", events)
        else:
            send(request, 200, b"id: 7\nretry: 1\ndata:\n\n", events)

    with web_server({"/mcp": mcp_page(answer)}) as server:
        data = await called(f"http://127.0.0.1:{server.port}/mcp")
        assert data["content"][0]["text"] == "seen"
        assert [each.headers["last-event-id"] for each in server.asked if "last-event-id" in each.headers] == ["7"]
        assert sum(b"tools/call" in each.body for each in server.asked) == 1


SSE_ENDS: list[tuple[bytes, int, str]] = [
    (b"event: endpoint\ndata: https://elsewhere.example/post\n\n", 200, "names another host to post to; nothing"),
    (b"event: endpoint\ndata: http://u:p@HOST/post\n\n", 200, "names another host to post to"),
    (b"data: x\n\n", 200, "does not say where to post; nothing was done"),
    (b"", 401, "does not know these credentials (HTTP 401)"),
    (b"", 500, "failed (HTTP 500)"),
    (b"", 204, "does not speak the protocol"),
]


@pytest.mark.parametrize(("body", "status", "expected"), SSE_ENDS)
async def test_a_stream_that_cannot_be_used_is_said_to_be(body: bytes, status: int, expected: str) -> None:
    def page(request: BaseHTTPRequestHandler) -> None:
        host = request.headers["host"].encode()
        send(request, status, body.replace(b"HOST", host), {"Content-Type": "text/event-stream"})

    with web_server({"/sse": page}) as server:
        with pytest.raises(McpError) as raised:
            await tool_for(f"http://127.0.0.1:{server.port}/sse").get_actions_metadata()
        assert expected in str(raised.value)


async def test_a_post_that_sse_servers_turn_down_is_an_error_at_once_and_a_lost_stream_ends_the_wait() -> None:
    posted = threading.Event()

    def stream(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Type", "text/event-stream")
        request.end_headers()
        request.wfile.write(b"event: endpoint\ndata: /post\n\n")
        request.wfile.flush()
        assert posted.wait(10)

    def taken(request: BaseHTTPRequestHandler) -> None:
        send(request, 202)
        posted.set()

    refusing = {"/sse": stream, "/post": lambda request: send(request, 403)}
    with web_server(refusing) as server, pytest.raises(McpError, match="HTTP 403"):
        await tool_for(f"http://127.0.0.1:{server.port}/sse").get_actions_metadata()
    posted.set()
    posted.clear()
    taking: dict[str, Page] = {"/sse": stream, "/post": taken}
    with web_server(taking) as server, anyio.fail_after(10), pytest.raises(NotAnswered, match="broke off"):
        await tool_for(f"http://127.0.0.1:{server.port}/sse").get_actions_metadata()


async def test_a_body_larger_than_the_policy_allows_ends_the_call_and_not_the_session() -> None:
    with scripted_server() as server:
        async with anyio.create_task_group() as tasks:
            policy = NetPolicy(allow=AllowList(("127.0.0.1",)), largest=20_000)
            tool = tool_for(server.url)
            tool.scope = type(tool.scope)(user_id="u", owner="u", tool_id="t1", services=Services(policy, tasks=tasks))
            server.answers["call look"] = lambda _: {"content": [{"type": "text", "text": "x" * 30_000}]}
            large = await tool.execute_action("look", tool_context(), bay=1)
            assert large.status == "error"
            assert "it may have had its effect" in large.data["error"]
            del server.answers["call look"]
            assert (await tool.execute_action("look", tool_context(), bay=1)).status == "completed"
            assert server.methods().count("initialize") == 1
            await tool.scope.services.aclose()


async def test_what_a_server_says_unasked_comes_by_its_own_stream() -> None:
    heard: list[str] = []

    def answer(request: BaseHTTPRequestHandler, number: Any) -> None:
        server = request.server
        assert isinstance(server, WebServer)
        if server.asked[-1].method == "GET":
            notice = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
            heard.append("GET")
            body = f"data: {json.dumps(notice)}\n\n".encode()
            send(request, 200 if len(heard) == 1 else 405, body, {"Content-Type": "text/event-stream"})
        else:
            send(request, 200, ANSWER(number))

    with web_server({"/mcp": mcp_page(answer)}) as server:
        changed = anyio.Event()

        class Watched(Session):
            def _list_changed(self) -> None:
                super()._list_changed()
                changed.set()

        async def nothing() -> None:
            return None

        url = f"http://127.0.0.1:{server.port}/mcp"
        session = Watched(Server.of({"server_url": url}), nothing, Services(LOCAL), 300)
        async with anyio.create_task_group() as owner:
            owner.start_soon(session.run)
            with anyio.fail_after(10):
                await changed.wait()
            session.close()
    assert heard[0] == "GET"
