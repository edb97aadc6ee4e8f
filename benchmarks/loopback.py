"""A web server in a process of its own, as quick as can be: GET of ``/1000`` gets a thousand bytes."""

from __future__ import annotations

import socket
import threading
from contextlib import AbstractContextManager

from benchmarks.serving import serve, served

__all__ = ("loopback",)


def loopback() -> AbstractContextManager[str]:
    """Give out the server's origin; it is gone when the block is left."""
    return served("benchmarks.loopback")


def _accept(listener: socket.socket) -> None:
    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=_respond, args=(connection,), daemon=True).start()


def _respond(connection: socket.socket) -> None:
    received = b""
    while piece := connection.recv(65536):
        received += piece
        while b"\r\n\r\n" in received:
            head, _, received = received.partition(b"\r\n\r\n")
            size = int(head.split(b" ", 2)[1].lstrip(b"/"))
            fields = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {size}\r\n\r\n"
            connection.sendall(fields.encode() + b"x" * size)


if __name__ == "__main__":
    serve(_accept)
