"""A small HTTP server on this machine, for tests: pages by path, and what was asked of it."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler

from tests.engine.quiet_server import QuietServer

__all__ = ("Asked", "Page", "WebServer", "endless", "raw", "redirect", "text", "web_server")

Page = Callable[[BaseHTTPRequestHandler], None]


class Asked:
    """One request: its method, its path, its headers (names in lower case), its body, the port that it came from."""

    def __init__(self, method: str, path: str, headers: dict[str, str], body: bytes, port: int) -> None:
        self.method = method
        self.path = path
        self.headers = headers
        self.body = body
        self.port = port


class WebServer(QuietServer):
    """Serves ``pages``; a path that is not there is 404. With ``keeps_alive`` its connections outlive a response."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, pages: dict[str, Page], context: ssl.SSLContext | None, *, keeps_alive: bool) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.pages = pages
        self.protocol = "HTTP/1.1" if keeps_alive else "HTTP/1.0"
        self.asked: list[Asked] = []
        self.connections: list[socket.socket] = []
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_side=True)

    def drop_connections(self) -> None:
        """Close what is open to clients; on this machine they see it at once."""
        while self.connections:
            connection = self.connections.pop()
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    @property
    def port(self) -> int:
        """The port it listens on, on 127.0.0.1."""
        return int(self.server_address[1])


class _Handler(BaseHTTPRequestHandler):
    def handle(self) -> None:
        assert isinstance(self.server, WebServer)
        self.protocol_version = self.server.protocol
        self.server.connections.append(self.connection)
        try:
            super().handle()
        except (ConnectionResetError, ssl.SSLError):
            self.close_connection = True

    def do_GET(self) -> None:
        assert isinstance(self.server, WebServer)
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = self.rfile.read(int(headers.get("content-length", "0")))
        self.server.asked.append(Asked(self.command, self.path, headers, body, int(self.client_address[1])))
        page = self.server.pages.get(self.path)
        if page is None:
            self.send_error(404)
            return
        try:
            page(self)
        except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
            self.close_connection = True

    do_POST = do_PUT = do_DELETE = do_HEAD = do_GET  # noqa: N815

    def log_message(
        self,
        format: str,  # noqa: A002
        *args: object,
    ) -> None:
        """Say nothing."""


@contextmanager
def web_server(
    pages: dict[str, Page], context: ssl.SSLContext | None = None, *, keeps_alive: bool = False
) -> Iterator[WebServer]:
    """Run a server in a thread; it is gone when the block is left."""
    server = WebServer(pages, context, keeps_alive=keeps_alive)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def text(body: str, content_type: str = "text/plain", **headers: str) -> Page:
    """A page of UTF-8; in the names of headers ``_`` stands for ``-``."""
    return raw(body.encode(), content_type, 200, **headers)


def raw(body: bytes, content_type: str = "text/plain", status: int = 200, **headers: str) -> Page:
    """A page of these bytes."""

    def page(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        for name, value in {"Content_Type": content_type, "Content_Length": str(len(body)), **headers}.items():
            request.send_header(name.replace("_", "-"), value)
        request.end_headers()
        request.wfile.write(body)

    return page


def redirect(target: str | None, status: int = 302) -> Page:
    """A redirect that tries to leave a cookie behind."""

    def page(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        if target is not None:
            request.send_header("Location", target)
        request.send_header("Set-Cookie", "a=b")
        request.send_header("Content-Length", "0")
        request.end_headers()

    return page


def endless(piece: bytes, status: int = 200, **headers: str) -> Page:
    """Sends the piece again and again, without saying how long it will be."""

    def page(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name.replace("_", "-"), value)
        request.end_headers()
        request.close_connection = True
        while True:
            request.wfile.write(piece)

    return page
