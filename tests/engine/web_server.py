"""A small HTTP server on this machine, for tests: pages by path, and what was asked of it."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

__all__ = ("Asked", "Page", "WebServer", "endless", "raw", "redirect", "text", "web_server")

Page = Callable[[BaseHTTPRequestHandler], None]


class Asked:
    """One request: its path and its headers in lower case."""

    def __init__(self, path: str, headers: dict[str, str]) -> None:
        self.path = path
        self.headers = headers


class WebServer(ThreadingHTTPServer):
    """Serves ``pages``; a path that is not there is 404."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, pages: dict[str, Page], context: ssl.SSLContext | None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.pages = pages
        self.asked: list[Asked] = []
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_side=True)

    @property
    def port(self) -> int:
        """The port it listens on, on 127.0.0.1."""
        return int(self.server_address[1])


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, WebServer)
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.asked.append(Asked(self.path, headers))
        page = self.server.pages.get(self.path)
        if page is None:
            self.send_error(404)
            return
        try:
            page(self)
        except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
            self.close_connection = True

    def log_message(
        self,
        format: str,  # noqa: A002
        *args: object,
    ) -> None:
        """Say nothing."""


@contextmanager
def web_server(pages: dict[str, Page], context: ssl.SSLContext | None = None) -> Iterator[WebServer]:
    """Run a server in a thread; it is gone when the block is left."""
    server = WebServer(pages, context)
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
    return raw(body.encode(), content_type, **headers)


def raw(body: bytes, content_type: str = "text/plain", **headers: str) -> Page:
    """A page of these bytes."""

    def page(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        for name, value in {"Content-Type": content_type, "Content-Length": str(len(body)), **headers}.items():
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


def endless(piece: bytes, **headers: str) -> Page:
    """Sends the piece again and again, without saying how long it will be."""

    def page(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        for name, value in headers.items():
            request.send_header(name.replace("_", "-"), value)
        request.end_headers()
        request.close_connection = True
        while True:
            request.wfile.write(piece)

    return page
