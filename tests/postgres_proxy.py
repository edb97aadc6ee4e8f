"""A TCP proxy before Postgres that can lose an answer: the statement is carried out, and the client never hears."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit, urlunsplit

__all__ = ("Proxy", "postgres_proxy")


class Proxy:
    """Forwards connections; threads, so that it works beside any event loop."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._upstream = (str(parts.hostname), parts.port or 5432)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = urlunsplit(
            parts._replace(
                netloc=f"{parts.username}:{parts.password}@127.0.0.1:{self._listener.getsockname()[1]}",
            )
        )
        self._marker: bytes | None = None
        self._away = False
        self.lost = 0
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def lose_answer_to(self, marker: str) -> None:
        """Cut the connection over which ``marker`` is sent next, in place of the server's answer to it."""
        self._marker = marker.encode()

    def go_away(self) -> None:
        """Cut every connection and refuse new ones, as a server does that is not there."""
        self._away = True
        self._cut(self._sockets)

    def come_back(self) -> None:
        """Take connections again."""
        self._away = False

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self._away:
                    client.close()
                    continue
                server = socket.create_connection(self._upstream)
                self._sockets += [client, server]
                link = _Link(self, client, server)
                threading.Thread(target=link.forward, daemon=True).start()
                threading.Thread(target=link.answer, daemon=True).start()

    def sees(self, data: bytes) -> bool:
        """Tell whether the data has the marker, which then is used up."""
        if self._marker is None or self._marker not in data:
            return False
        self._marker = None
        return True

    def close(self) -> None:
        """Cut everything."""
        self._cut([self._listener, *self._sockets])

    @staticmethod
    def _cut(sockets: list[socket.socket]) -> None:
        for each in sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


class _Link:
    """One proxied connection."""

    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket) -> None:
        self._proxy = proxy
        self._client = client
        self._server = server
        self._cut = False

    def forward(self) -> None:
        with contextlib.suppress(OSError):
            while data := self._client.recv(65536):
                self._cut = self._proxy.sees(data) or self._cut
                self._server.sendall(data)
        self._end()

    def answer(self) -> None:
        with contextlib.suppress(OSError):
            while data := self._server.recv(65536):
                if self._cut:
                    self._proxy.lost += 1
                    break
                self._client.sendall(data)
        self._end()

    def _end(self) -> None:
        for each in (self._client, self._server):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


@contextmanager
def postgres_proxy(url: str) -> Iterator[Proxy]:
    """Run a proxy to the server of ``url``."""
    proxy = Proxy(url)
    try:
        yield proxy
    finally:
        proxy.close()
