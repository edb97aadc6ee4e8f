"""A local server that says nothing of clients that hang up: a connection that was kept alive ends so."""

from __future__ import annotations

import sys
from http.server import ThreadingHTTPServer
from typing import Any

__all__ = ("QuietServer",)


class QuietServer(ThreadingHTTPServer):
    """Prints what a handler raises, but for a connection that its client has reset."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)
