"""What can go wrong with an MCP server; each text is fit for a model and holds nothing that a server was sent."""

from __future__ import annotations

from events.errors import Refused

__all__ = ("InvalidServer", "McpError", "NotAllowed", "NotAnswered", "RefusedByServer", "SessionOver", "SignInNeeded")


class McpError(Refused):
    """The server could not be used, or did not do what it was asked."""


class InvalidServer(McpError):
    """The row's configuration names no server that can be reached."""


class NotAnswered(McpError):
    """No answer came.

    :ivar ran: the request may have reached the server: what it asked for may have been done
    """

    def __init__(self, text: str, *, ran: bool) -> None:
        super().__init__(f"{text}; it may have had its effect" if ran else f"{text}; nothing was done")
        self.ran = ran


class NotAllowed(McpError):
    """The server does not know these credentials, or they do not reach so far (HTTP 401, 403); nothing was done."""


class SignInNeeded(NotAllowed):
    """Only a person can give access (OAuth), and a call never waits for one."""


class SessionOver(McpError):
    """The session must not be used any further, for it was opened as somebody else; nothing was sent."""


class RefusedByServer(McpError):
    """The server answered with a protocol error.

    :ivar code: JSON-RPC's
    """

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
