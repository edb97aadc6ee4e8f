"""What became of one request on the wire: the status of its answer, and what went wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

__all__ = ("Exchange", "current_exchange", "in_exchange")


class Exchange:
    """One request and its answer.

    :ivar number: the request's JSON-RPC id, and ``method`` its method
    :ivar status: of the HTTP response
    :ivar content_type: of the response, without its parameters
    :ivar session_id: of the session in which it was sent, as the server calls it
    :ivar error: why there was no response, or no whole one
    :ivar sent: it may have reached the server
    :ivar result: the answer's result as it came, not checked
    """

    def __init__(self) -> None:
        self.number: int | str | None = None
        self.method = ""
        self.status: int | None = None
        self.content_type = ""
        self.session_id: str | None = None
        self.error: Exception | None = None
        self.sent = False
        self.result: dict[str, Any] | None = None

    def __repr__(self) -> str:
        return f"<Exchange {self.number} status={self.status}>"


_CURRENT: Final[ContextVar[Exchange | None]] = ContextVar("calljournal_mcp_exchange", default=None)


def current_exchange() -> Exchange | None:
    """Return the exchange that the running code is part of."""
    return _CURRENT.get()


@contextmanager
def in_exchange(exchange: Exchange | None) -> Iterator[None]:
    """Make the code within part of an exchange: the session's own code stands between who asks and what is asked."""
    token = _CURRENT.set(exchange)
    try:
        yield
    finally:
        _CURRENT.reset(token)
