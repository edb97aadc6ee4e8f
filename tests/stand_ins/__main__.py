"""``python -m tests.stand_ins NAME``: run a tool's stand-in until standard input ends.

The first line of standard output says how a row is configured for it, and what to call; then there is a line for each
request that arrives. ``postgres`` is a real server, and says nothing of what arrives.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec

from tests.stand_ins.stand_in import NAMES, StandIn, stand_in

__all__ = ()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    answers: tuple[tuple[str, bytes], ...] = ()

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        assert isinstance(self.server, _Server)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        _say({"method": self.command, "target": self.path, "body": body.decode("utf-8", "backslashreplace")})
        path = self.path.partition("?")[0]
        answer = next((content for end, content in self.server.answers if path.endswith(end)), b"")
        self.send_response(200 if answer else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8" if answer[:1] == b"<" else "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_POST = do_PUT = do_GET  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


def _say(content: Any) -> None:
    sys.stdout.write(msgspec.json.encode(content).decode() + "\n")
    sys.stdout.flush()


@contextmanager
def _serving(name: str) -> Iterator[StandIn]:
    with ExitStack() as stack:
        if name == "postgres":
            from tests.postgres_server import postgres_server

            yield stand_in(name, stack.enter_context(postgres_server(fsync=False)).create_database())
            return
        server = stack.enter_context(_Server(("127.0.0.1", 0), _Handler))
        found = stand_in(name, server.origin)
        server.answers = found.answers
        threading.Thread(target=server.serve_forever, daemon=True).start()
        stack.callback(server.shutdown)
        yield found


def main() -> None:
    """Serve until nobody listens."""
    name = sys.argv[1] if len(sys.argv) == 2 else ""
    if name not in NAMES:
        sys.stderr.write(f"usage: python -m tests.stand_ins NAME, one of {', '.join(NAMES)}\n")
        raise SystemExit(3)
    with _serving(name) as found:
        _say({"config": found.config, "trials": found.trials})
        sys.stdin.buffer.read()


if __name__ == "__main__":
    main()
