"""A server on this machine in a process of its own, so that its work is not the client's."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ("serve", "served")


@contextmanager
def served(module: str, *arguments: str) -> Iterator[str]:
    """Run a module that calls :func:`serve`, and give out its origin; it is gone when the block is left."""
    command = [sys.executable, "-m", module, *arguments]
    folder = Path(__file__).parent.parent
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder) as server:
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.terminate()


def serve(work: Callable[[socket.socket], None]) -> None:
    """Say on which port the server listens, and let it work until whoever started it is gone."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sys.stdout.write(f"{listener.getsockname()[1]}\n")
        sys.stdout.flush()
        threading.Thread(target=work, args=(listener,), daemon=True).start()
        # It ends with who started this process.
        sys.stdin.read()
