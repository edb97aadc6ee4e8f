"""A server that keeps every request as its bytes were, and answers with the bytes it is told to."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

__all__ = ("RawServer", "Received", "answer", "raw_server")


class Received:
    """One request: its target as it was on the wire, its headers in their order, its body."""

    def __init__(self, head: bytes, body: bytes) -> None:
        first, *lines = head.decode("latin-1").split("\r\n")
        self.method, self.target, _ = first.split(" ")
        self.path = urlsplit(self.target).path
        self.query = urlsplit(self.target).query
        self.headers = [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines)]
        self.body = body

    def header(self, name: str) -> str | None:
        """Return a header's value; several of one name fail."""
        found = [value for key, value in self.headers if key == name.lower()]
        assert len(found) < 2, f"{name} came {len(found)} times"
        return found[0] if found else None


class RawServer:
    """Answers the first of ``answers`` and takes it off, the last again and again; one connection per request.

    With ``holds`` it leaves the connection open after its answer until the client ends it.
    """

    def __init__(self) -> None:
        self.answers = [answer(b"{}")]
        self.received: list[Received] = []
        self.holds = False
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self.origin = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def last(self) -> Received:
        """The request that came last."""
        return self.received[-1]

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            with connection, suppress(OSError):
                connection.settimeout(10)
                self._serve_one(connection)

    def _serve_one(self, connection: socket.socket) -> None:
        buffer = b""
        while b"\r\n\r\n" not in buffer:
            piece = connection.recv(65536)
            if not piece:
                return
            buffer += piece
        head, _, body = buffer.partition(b"\r\n\r\n")
        received = Received(head, b"")
        length = int(received.header("content-length") or 0)
        while len(body) < length:
            body += connection.recv(65536)
        received.body = body
        self.received.append(received)
        chosen = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        connection.sendall(chosen)
        with suppress(OSError):
            if not self.holds:
                connection.shutdown(socket.SHUT_WR)
            connection.recv(1)

    def close(self) -> None:
        """Take no more requests."""
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join(5)


def answer(
    body: bytes = b"", status: int = 200, content_type: str | None = "application/json", **headers: str
) -> bytes:
    """Return a response's bytes; in the names of headers ``_`` stands for ``-``."""
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}", "Connection: close"]
    lines += [] if content_type is None else [f"Content-Type: {content_type}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


@contextmanager
def raw_server() -> Iterator[RawServer]:
    """Run a server in a thread; it is gone when the block is left."""
    server = RawServer()
    try:
        yield server
    finally:
        server.close()
