"""A web server in a process of its own, as quick as can be: GET of ``/1000`` gets a thousand bytes."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ("loopback",)


@contextmanager
def loopback() -> Iterator[str]:
    """Give out the server's origin; it is gone when the block is left."""
    command = [sys.executable, "-m", "benchmarks.loopback"]
    folder = Path(__file__).parent.parent
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder) as server:
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.terminate()


def _serve() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sys.stdout.write(f"{listener.getsockname()[1]}\n")
        sys.stdout.flush()
        # Whoever started it is gone when this ends.
        threading.Thread(target=_accept, args=(listener,), daemon=True).start()
        sys.stdin.read()


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
    _serve()
