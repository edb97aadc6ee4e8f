"""Servers that are not what they should be, and TLS in front of one that is."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

__all__ = ("Asked", "authentication", "serving", "tls_before")

SSL_REQUEST = bytes.fromhex("0000000804d2162f")

Script = Callable[["Asked"], None]


class Asked:
    """One connection to a stranger, its first message read."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.startup = self.message(b"")

    def message(self, kind: bytes) -> bytes:
        """Read a message: of this kind, or without one, as the first is."""
        head = self.exactly(len(kind) + 4)
        assert head[: len(kind)] == kind
        return self.exactly(int.from_bytes(head[len(kind) :], "big") - 4)

    def exactly(self, length: int) -> bytes:
        """Read so many bytes. :raises OSError: if they do not come"""
        data = b""
        while len(data) < length:
            piece = self.connection.recv(length - len(data))
            if not piece:
                raise OSError("gone")
            data += piece
        return data

    def says(self, data: bytes) -> None:
        """Send this."""
        self.connection.sendall(data)

    def waits(self) -> None:
        """Wait until the other side has gone."""
        while self.connection.recv(65536):
            pass


def authentication(kind: int, rest: bytes = b"") -> bytes:
    """Return a server's message about who is there."""
    return b"R" + (8 + len(rest)).to_bytes(4, "big") + kind.to_bytes(4, "big") + rest


@contextmanager
def _listening(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    listening = socket.create_server(("127.0.0.1", 0))
    served: list[tuple[threading.Thread, socket.socket]] = []

    def one(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.settimeout(20)
            serve(connection)

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                thread = threading.Thread(target=one, args=(connection,), daemon=True)
                thread.start()
                served.append((thread, connection))

    accepting = threading.Thread(target=accept, daemon=True)
    accepting.start()
    try:
        yield int(listening.getsockname()[1])
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        accepting.join(10)
        for thread, connection in served:
            # The other side may have gone without its loop having had a turn to say so.
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            thread.join(10)


@contextmanager
def serving(script: Script) -> Iterator[int]:
    """Play a server's part on each connection, and give out its port."""
    with _listening(lambda connection: script(Asked(connection))) as port:
        yield port


@contextmanager
def tls_before(port: int, context: ssl.SSLContext, more: bytes = b"") -> Iterator[int]:
    """Put TLS before a server, and give out the port.

    :param more: what is sent with the answer that there is TLS, as by somebody in between
    """

    def serve(connection: socket.socket) -> None:
        if connection.recv(8) != SSL_REQUEST:
            return
        connection.sendall(b"S" + more)
        with (
            context.wrap_socket(connection, server_side=True) as secured,
            socket.create_connection(("127.0.0.1", port)) as behind,
        ):
            back = threading.Thread(target=_copy, args=(behind, secured), daemon=True)
            back.start()
            _copy(secured, behind)
            back.join(10)

    with _listening(serve) as before:
        yield before


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
