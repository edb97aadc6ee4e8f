"""A small MCP server on this machine whose every answer a test decides, and what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.engine.quiet_server import QuietServer

__all__ = ("LOOK", "Asked", "ScriptedServer", "Status", "scripted_server", "text_result")

LOOK = {
    "name": "look",
    "description": "Looks at a bay.",
    "inputSchema": {"type": "object", "properties": {"bay": {"type": "integer"}}},
    "annotations": {"readOnlyHint": True},
}


class Status(Exception):
    """Raised by what answers: this HTTP status, and this body, instead of a result."""

    def __init__(self, status: int, body: bytes = b"") -> None:
        super().__init__(status)
        self.status = status
        self.body = body


class Asked:
    """One message: its HTTP verb, its JSON-RPC method, id and parameters, the session's id, its other headers."""

    def __init__(self, verb: str, content: dict[str, Any], headers: dict[str, str]) -> None:
        self.verb = verb
        self.method = content.get("method", "")
        self.number = content.get("id")
        self.content = content
        self.params: dict[str, Any] = content.get("params") or {}
        self.session = headers.get("mcp-session-id")
        self.headers = headers

    def __repr__(self) -> str:
        return f"{self.verb} {self.method} {self.session}"


Answer = Callable[[Asked], dict[str, Any]]


def text_result(text: str) -> dict[str, Any]:
    """Return the result of a call that says one thing."""
    return {"content": [{"type": "text", "text": text}]}


class ScriptedServer(QuietServer):
    """Speaks the protocol of 2025 over streamable HTTP, one session after another: ``s1``, ``s2``, …

    :ivar asked: every message, in order
    :ivar tools: what ``tools/list`` gives, in one page
    :ivar answers: what answers a method, or a tool's calls (``call look``); without one, the tool says its arguments
    :ivar notices: messages before the next answer to a call, each once
    :ivar holding: methods that are answered only when ``release`` is set
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}/mcp"
        self.asked: list[Asked] = []
        self.tools: list[dict[str, Any]] = [LOOK]
        self.answers: dict[str, Answer] = {}
        self.notices: list[dict[str, Any]] = []
        self.holding: set[str] = set()
        self.release = threading.Event()
        self.sessions: set[str] = set()
        self.begun = 0
        self.open_posts = 0
        self._moved = threading.Condition()

    def methods(self) -> list[str]:
        """Return what was asked, but for the question for the newest protocol."""
        return [each.method for each in self.asked if each.verb == "POST" and each.method != "server/discover"]

    def calls(self) -> list[Asked]:
        """Return the calls of tools."""
        return [each for each in self.asked if each.method == "tools/call"]

    def restart(self) -> None:
        """Forget every session."""
        self.sessions.clear()

    def until(self, holds: Callable[[], bool]) -> bool:
        """Wait until something holds; False: it did not within 10 seconds."""
        with self._moved:
            return self._moved.wait_for(holds, 10)

    def moved(self, change: Callable[[], None]) -> None:
        """Change something, and look who waited for that."""
        with self._moved:
            change()
            self._moved.notify_all()

    def result(self, asked: Asked) -> dict[str, Any]:
        """Return what a request gets."""
        name = f"call {asked.params.get('name')}" if asked.method == "tools/call" else asked.method
        for key in (name, asked.method):
            if key in self.answers:
                return self.answers[key](asked)
        if asked.method == "initialize":
            info = {"name": "scripted", "version": "1"}
            capabilities = {"tools": {"listChanged": True}}
            return {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info}
        if asked.method == "tools/list":
            return {"tools": self.tools}
        if asked.method == "tools/call":
            return text_result(json.dumps(asked.params.get("arguments")))
        raise Status(400)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ScriptedServer

    def do_POST(self) -> None:
        content = json.loads(self.rfile.read(int(self.headers["content-length"])))
        asked = Asked("POST", content, {name.lower(): value for name, value in self.headers.items()})
        self.server.moved(lambda: self.server.asked.append(asked))
        try:
            self._answer(asked)
        except Status as status:
            self._send(status.status, status.body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _answer(self, asked: Asked) -> None:
        server = self.server
        if asked.session is not None and asked.session not in server.sessions:
            raise Status(404)
        if asked.number is None or not asked.method:
            self._send(202)
            return
        if asked.method in server.holding:
            self._hold()
        result = server.result(asked)
        headers = {}
        if asked.method == "initialize":
            server.begun += 1
            headers["Mcp-Session-Id"] = f"s{server.begun}"
            server.sessions.add(headers["Mcp-Session-Id"])
        kind = "error" if "code" in result and "message" in result else "result"
        reply = {"jsonrpc": "2.0", "id": asked.number, kind: result}
        if asked.method == "tools/call" and server.notices:
            notices, server.notices = server.notices, []
            events = "".join(f"event: message\ndata: {json.dumps(each)}\n\n" for each in [*notices, reply])
            self._send(200, events.encode(), {"Content-Type": "text/event-stream"})
        else:
            self._send(200, json.dumps(reply).encode(), {"Content-Type": "application/json", **headers})

    def _hold(self) -> None:
        """Wait, until let go or the client has gone."""
        self.server.moved(lambda: setattr(self.server, "open_posts", self.server.open_posts + 1))
        self.connection.settimeout(0.02)
        try:
            while not self.server.release.is_set():
                with suppress(TimeoutError):
                    if not self.connection.recv(1):
                        raise BrokenPipeError
        finally:
            self.connection.settimeout(None)
            self.server.moved(lambda: setattr(self.server, "open_posts", self.server.open_posts - 1))

    def do_GET(self) -> None:
        self._send(405)

    def do_DELETE(self) -> None:
        asked = Asked("DELETE", {}, {name.lower(): value for name, value in self.headers.items()})
        self.server.moved(lambda: self.server.asked.append(asked))
        self._send(200)

    def _send(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(
        self,
        format: str,  # noqa: A002
        *args: object,
    ) -> None:
        """Say nothing."""


@contextmanager
def scripted_server() -> Iterator[ScriptedServer]:
    """Run a server in a thread; it is gone when the block is left."""
    server = ScriptedServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.release.set()
        server.shutdown()
        server.server_close()
        thread.join(5)
