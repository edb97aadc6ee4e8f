"""A pooler in transaction mode before Postgres: a real pgbouncer where there is one, and always a small one of our own.

Ours hands out two server connections in turn, transaction by transaction, so that whatever a client leaves behind on
one is not there the next time; it refuses settings it does not know, as pgbouncer does.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from urllib.parse import urlsplit, urlunsplit

import msgspec

__all__ = ("find_pgbouncer", "pgbouncer", "stub_pooler")

_SSL_REQUEST = 80877103
_CANCEL_REQUEST = 80877102
_VERSION = 196608
_KNOWN = frozenset({"user", "database", "client_encoding", "datestyle", "timezone", "application_name"})


class _Message(msgspec.Struct, frozen=True):
    """One protocol message: its kind, and all its bytes."""

    kind: bytes
    data: bytes


class _Peer:
    """One end of a connection that speaks the protocol, after its start."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        # Message by message: waiting to fill a packet would cost 40 ms each.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            chunk = self.socket.recv(count - len(data))
            if not chunk:
                raise ConnectionError
            data += chunk
        return data

    def message(self) -> _Message:
        head = self.exactly(5)
        return _Message(head[:1], head + self.exactly(struct.unpack("!i", head[1:])[0] - 4))

    def until_ready(self) -> list[_Message]:
        messages = [self.message()]
        while messages[-1].kind != b"Z":
            messages.append(self.message())
        return messages

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


class _Stub:
    """The listener, and the server connections it hands out."""

    def __init__(self, url: str, size: int) -> None:
        parts = urlsplit(url)
        self._address = (str(parts.hostname), parts.port or 5432)
        settings = {"user": str(parts.username), "database": parts.path.removeprefix("/")}
        self._servers: SimpleQueue[_Peer] = SimpleQueue()
        self._all: list[_Peer] = []
        for _ in range(size):
            server, self._greeting = self._connect(settings)
            self._servers.put(server)
        self.listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    def _connect(self, settings: dict[str, str]) -> tuple[_Peer, list[_Message]]:
        server = _Peer(socket.create_connection(self._address))
        self._all.append(server)
        pairs = b"".join(f"{name}\0{value}\0".encode() for name, value in settings.items()) + b"\0"
        server.socket.sendall(struct.pack("!ii", 8 + len(pairs), _VERSION) + pairs)
        return server, server.until_ready()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client = _Peer(self.listener.accept()[0])
                self._all.append(client)
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: _Peer) -> None:
        with contextlib.suppress(OSError):
            if self._greet(client):
                while self._transaction(client):
                    pass
        client.close()

    def _greet(self, client: _Peer) -> bool:
        size, code = struct.unpack("!ii", client.exactly(8))
        while code == _SSL_REQUEST:
            client.socket.sendall(b"N")
            size, code = struct.unpack("!ii", client.exactly(8))
        if code == _CANCEL_REQUEST:
            return False
        names = client.exactly(size - 8).split(b"\0")[:-2:2]
        for name in names:
            if name.decode().lower() not in _KNOWN:
                fields = b"SFATAL\0VFATAL\0C08P01\0Munsupported startup parameter: " + name + b"\0\0"
                client.socket.sendall(b"E" + struct.pack("!i", 4 + len(fields)) + fields)
                return False
        client.socket.sendall(b"".join(message.data for message in self._greeting))
        return True

    def _transaction(self, client: _Peer) -> bool:
        """Serve one transaction with whatever server connection comes next; False: the client has left."""
        message = client.message()
        if message.kind == b"X":
            return False
        server = self._servers.get()
        try:
            _relay(client, server, message)
        except OSError:
            self._abandon(server)
            raise
        finally:
            self._servers.put(server)
        return True

    def _abandon(self, server: _Peer) -> None:
        text = b"ROLLBACK\0"
        server.socket.sendall(b"S" + struct.pack("!i", 4) + b"Q" + struct.pack("!i", 4 + len(text)) + text)
        server.until_ready()
        server.until_ready()

    def close(self) -> None:
        self.listener.close()
        for peer in self._all:
            peer.close()


def _relay(client: _Peer, server: _Peer, message: _Message) -> None:
    """Pass messages on until the server is ready outside of a transaction and has answered everything."""
    awaited = 0
    while True:
        server.socket.sendall(message.data)
        awaited += message.kind in (b"S", b"Q")
        while client.socket not in select.select([client.socket, server.socket], [], [])[0]:
            answer = server.message()
            client.socket.sendall(answer.data)
            awaited -= answer.kind == b"Z"
            if answer.kind == b"Z" and answer.data[-1:] == b"I" and not awaited:
                return
        message = client.message()
        if message.kind == b"X":
            raise ConnectionError


def _through(url: str, port: int) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{parts.username}:{parts.password}@127.0.0.1:{port}"))


@contextmanager
def stub_pooler(url: str, size: int = 2) -> Iterator[str]:
    """Run our pooler before the database of ``url`` and return its own URL."""
    stub = _Stub(url, size)
    try:
        yield _through(url, stub.listener.getsockname()[1])
    finally:
        stub.close()


def find_pgbouncer() -> str | None:
    """Return a pgbouncer to run: $PGBOUNCER, or the one on the PATH."""
    return os.environ.get("PGBOUNCER") or shutil.which("pgbouncer")


@contextmanager
def pgbouncer(url: str) -> Iterator[str]:
    """Run a real pgbouncer in transaction mode before the database of ``url`` and return its own URL."""
    parts = urlsplit(url)
    with tempfile.TemporaryDirectory(prefix="cj-bouncer-") as folder:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        settings = Path(folder) / "pgbouncer.ini"
        settings.write_text(
            f"[databases]\n* = host={parts.hostname} port={parts.port} user={parts.username}\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n"
            "pool_mode = transaction\ndefault_pool_size = 2\nserver_round_robin = 1\nmax_client_conn = 50\n"
        )
        Path(folder).chmod(0o755)
        user = "nobody" if os.geteuid() == 0 else None
        command = [find_pgbouncer() or "pgbouncer", str(settings)]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, user=user) as process:
            try:
                _wait_for(port)
                yield _through(url, port)
            finally:
                process.kill()


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + 10
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return
