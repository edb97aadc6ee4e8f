"""From whatever went wrong with a server to what is said of it: whether anything was done, never what was sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import httpx2
from mcp.shared.exceptions import MCPError

from engine.mcp.channel import NoAnswer
from engine.mcp.errors import McpError, NotAllowed, NotAnswered, RefusedByServer, SessionOver
from engine.mcp.exchange import Exchange
from engine.mcp.server import Server
from engine.mcp.session import NotOpened
from engine.mcp.transport import NoStream
from engine.net.errors import NetError, Unreachable, UnsafeUserUrlError
from engine.net.failures import said_of
from events.errors import JournalError

__all__ = ("explained", "is_over")

_LONGEST: Final = 1000
_NEVER_SENT: Final = (
    McpError,
    UnsafeUserUrlError,
    Unreachable,
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.UnsupportedProtocol,
)


def is_over(error: NoAnswer, server: Server) -> bool:
    """Tell whether a request was not taken because its session is over: then it certainly was not run."""
    exchange = error.exchange
    if isinstance(exchange.error, SessionOver):
        return True
    if exchange.status == 404:
        return exchange.session_id is not None or server.transport == "sse"
    return error.cut and not exchange.sent


def explained(error: Exception, server: Server, masked: Callable[[str], str]) -> McpError:
    """Return what is said of an error, or of the parts of a group.

    :param masked: takes secrets out of the server's own words
    """
    opened = not isinstance(error, NotOpened)
    leaf = _leaf(error if opened else error.__cause__)
    match leaf:
        case McpError():
            return leaf
        case NoAnswer(exchange=exchange):
            return _unanswered(leaf, exchange, server.address, masked, opened=opened)
        case NoStream(status=None) if leaf.__cause__ is not None:
            return _broken(leaf.__cause__, server.address, ran=False)
        case NoStream(status=None):
            return NotAnswered(f"the MCP server {server.address} cannot be used: {leaf}", ran=False)
        case NoStream(status=int(status)):
            return _by_status(status, server.address) or _unusable(server.address, ran=False)
        case MCPError():
            return _refused(leaf, server.address, masked)
        case NetError() | httpx2.HTTPError():
            return _broken(leaf, server.address, ran=opened)
        case JournalError():
            return McpError(str(leaf))
        case _:
            return _unusable(server.address, ran=opened)


def _leaf(error: BaseException | None) -> BaseException | None:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _unusable(address: str, *, ran: bool) -> McpError:
    return NotAnswered(f"the MCP server {address} does not speak the protocol as expected", ran=ran)


def _refused(error: MCPError, address: str, masked: Callable[[str], str]) -> McpError:
    # Masked before it is cut: half a secret is not found any more.
    return RefusedByServer(error.code, f"the MCP server {address} refused: {masked(error.message)[:_LONGEST]}")


def _unanswered(
    error: NoAnswer, exchange: Exchange, address: str, masked: Callable[[str], str], *, opened: bool
) -> McpError:
    if exchange.error is not None:
        if isinstance(exchange.error, McpError):
            return exchange.error
        return _broken(exchange.error, address, ran=exchange.sent and opened)
    status = exchange.status or 0
    if error.cut:
        return NotAnswered(f"the connection to the MCP server {address} broke off", ran=exchange.sent and opened)
    if status in (401, 403) or not error.said:
        return _by_status(status, address) or _unusable(address, ran=opened)
    return _refused(error, address, masked)


def _by_status(status: int, address: str) -> McpError | None:
    if status in (401, 403):
        why = "does not know these credentials" if status == 401 else "does not allow this"
        return NotAllowed(f"the MCP server {address} {why} (HTTP {status}); nothing was done")
    if status >= 500:
        return NotAnswered(f"the MCP server {address} failed (HTTP {status})", ran=True)
    if status >= 300:
        return NotAnswered(f"the MCP server {address} did not take the request (HTTP {status})", ran=False)
    return None


def _broken(error: BaseException, address: str, *, ran: bool) -> McpError:
    if isinstance(error, NetError):
        why = str(error)
    elif isinstance(error, httpx2.HTTPError | httpx2.StreamError):
        # Our transport's own texts, which quote neither the request nor the response.
        why = str(error) if error.args else said_of(Exception())
    elif isinstance(error, TimeoutError):
        why = str(error)
    else:
        why = f"it could not be used ({type(error).__name__})"
    return NotAnswered(f"the MCP server {address}: {why}", ran=ran and not isinstance(error, _NEVER_SENT))
