"""A call from its arguments to the server's answer: in which session, and once more if it certainly was not run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, TypeVar

import mcp_types as types
from pydantic import ValidationError

from engine.api.masking import Masker
from engine.contract import Scope
from engine.mcp.auth import auth_for
from engine.mcp.channel import NoAnswer
from engine.mcp.definitions import Definition
from engine.mcp.errors import McpError
from engine.mcp.explaining import explained, is_over
from engine.mcp.input_request import InputRequest
from engine.mcp.server import Server
from engine.mcp.session import Annotate, Session
from engine.mcp.sessions import Sessions, key_of

__all__ = ("Client", "Progress", "answered")

Progress = Callable[[float, float | None, str], None]
"""Takes (done, total or None, message)."""

T = TypeVar("T")

_ROUNDS: Final = 5
"""How often in one call a server may ask for what needs nobody."""


class Client:
    """What one row's tool has of its server.

    :ivar key: what its sessions are kept by
    :ivar masker: takes out of what comes back what was sent to authenticate
    """

    def __init__(self, server: Server, config: dict[str, Any], scope: Scope) -> None:
        self.server = server
        self.key = key_of(server, scope)
        self.sessions = scope.services.shared(Sessions)
        self._authenticate = partial(auth_for, config, scope)
        self._tokens: tuple[str, ...] = ()
        self.masker = Masker(server.credentials)

    def __repr__(self) -> str:
        return f"<Client of {self.server!r}>"

    async def definitions(self) -> dict[str, Definition]:
        """Return the server's tools by name. :raises McpError: if it does not list them"""
        return await self._in_session(Session.definitions)

    async def capabilities(self) -> frozenset[str]:
        """Return what the server says that it has besides tools. :raises McpError: if it cannot be reached"""
        return await self._in_session(Session.capabilities)

    async def result_of(
        self, request: types.Request[Any, Any], annotate: Annotate, progress: Progress | None = None
    ) -> dict[str, Any]:
        """Send a request and return the server's result as it came.

        :param annotate: told of each request that is sent
        :raises McpError: if there is no result
        """
        told = None if progress is None else partial(_tell, progress)
        return await self._in_session(partial(_sent, request, annotate, told))

    async def call_result(
        self, call: types.CallToolRequestParams, annotate: Annotate, progress: Progress
    ) -> dict[str, Any]:
        """Call a tool, as :meth:`result_of`; what the server asks for and needs nobody is answered on the way."""
        for _ in range(_ROUNDS):
            result = await self.result_of(types.CallToolRequest(params=call), annotate, progress)
            asks = InputRequest.of(result)
            if asks is None or asks.request:
                return result
            call = answered(call, asks)
        raise McpError("the MCP server goes on asking, and never comes to a result")

    async def _in_session(self, work: Callable[[Session], Awaitable[T]]) -> T:
        """Do work in a session; where the server did not take it, its session being over, once more in a new one.

        :raises McpError: if it comes to nothing
        """
        for last in (False, True):
            async with self.sessions.session(self.key, self.server, self._authenticate) as session:
                try:
                    return await self._worked(work, session)
                except NoAnswer as error:
                    over = is_over(error, self.server)
                    if over:
                        self.sessions.drop(self.key, session)
                    if last or not over:
                        raise explained(error, self.server, self.masker.text) from error
                except Exception as error:  # whatever kept the session from opening: it is put into words
                    raise explained(error, self.server, self.masker.text) from error
        raise AssertionError

    async def _worked(self, work: Callable[[Session], Awaitable[T]], session: Session) -> T:
        try:
            return await work(session)
        finally:
            if session.secrets != self._tokens:
                self._tokens = session.secrets
                self.masker = Masker({**self.server.credentials, "": list(self._tokens)})


def answered(call: types.CallToolRequestParams, answers: InputRequest) -> types.CallToolRequestParams:
    """Return a call with the answers to what its server asked.

    :raises McpError: if one of them is not as the protocol has it
    """
    try:
        return types.CallToolRequestParams(
            name=call.name,
            arguments=call.arguments,
            input_responses=answers.answer,
            request_state=answers.state,
        )
    except ValidationError:
        raise McpError("the answer is not in a form that the MCP server takes") from None


async def _sent(
    request: types.Request[Any, Any], annotate: Annotate, progress: Any, session: Session
) -> dict[str, Any]:
    return await session.result_of(request, annotate, progress)


async def _tell(progress: Progress, done: float, total: float | None, text: str | None) -> None:
    progress(done, total, text or "")
