"""The one request that a browser sends back: taken on this machine's own address, on a port of the moment.

Only what carries the expected state counts; anything else is answered and forgotten, so that no other page in the
browser can end the waiting.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import parse_qs, urlsplit

import anyio
import h11
import msgspec
from anyio.abc import ByteStream, SocketAttribute

from engine.mcp.oauth_errors import AuthorizationFailed, error_code, shown

__all__ = ("Callback", "Consent", "listening")

_HOST: Final = "127.0.0.1"
_PATH: Final = "/callback"
_PATIENCE: Final = 10.0
_LARGEST: Final = 16 * 1024

_DONE: Final = "The answer has arrived. You can close this page; the command line says how it went.\n"
_REFUSED: Final = "The authorization was refused. You can close this page.\n"
_FOREIGN: Final = "This is not the answer that is waited for.\n"


class Consent(msgspec.Struct, frozen=True):
    """What an authorization server sends back through the browser. Its ``repr`` shows none of it."""

    code: str
    state: str
    issuer: str | None

    def __repr__(self) -> str:
        return "<Consent>"


class Callback:
    """Waits for the browser.

    :ivar uri: where it is to be sent
    """

    def __init__(self, port: int) -> None:
        self.uri = f"http://{_HOST}:{port}{_PATH}"
        self._state: bytes | None = None
        self._arrived = anyio.Event()
        self._result: Consent | AuthorizationFailed | None = None

    def __repr__(self) -> str:
        return f"<Callback {self.uri}>"

    def expect(self, state: str) -> None:
        """Say by which state the answer is known."""
        self._state = state.encode()

    async def consent(self) -> Consent:
        """Wait for the answer. :raises AuthorizationFailed: if it is a refusal"""
        await self._arrived.wait()
        if isinstance(self._result, Consent):
            return self._result
        raise self._result or AuthorizationFailed("no answer came")

    async def handle(self, stream: ByteStream) -> None:
        """Answer one connection of a browser, which may be an idle one."""
        async with stream:
            try:
                with anyio.move_on_after(_PATIENCE):
                    await self._answer(stream)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, h11.ProtocolError):
                return

    async def _answer(self, stream: ByteStream) -> None:
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=_LARGEST)
        request = await _request(connection, stream)
        status, text, result = self._judged(request)
        headers = [
            ("Content-Type", "text/plain; charset=utf-8"),
            ("Content-Length", str(len(text))),
            ("Cache-Control", "no-store"),
            ("Referrer-Policy", "no-referrer"),
            ("X-Content-Type-Options", "nosniff"),
            ("Connection", "close"),
        ]
        body = b"" if request.method == b"HEAD" else text.encode()
        for event in (h11.Response(status_code=status, headers=headers), h11.Data(body), h11.EndOfMessage()):
            await stream.send(connection.send(event) or b"")
        if result is not None and self._result is None:
            self._result = result
            self._arrived.set()

    def _judged(self, request: h11.Request) -> tuple[int, str, Consent | AuthorizationFailed | None]:
        target = urlsplit(request.target.decode("ascii", "replace"))
        if request.method != b"GET" or target.path != _PATH:
            return 404, _FOREIGN, None
        said = {name: values[0] for name, values in parse_qs(target.query).items()}
        state = said.get("state", "")
        if self._state is None or not secrets.compare_digest(state.encode(), self._state):
            return 400, _FOREIGN, None
        if "error" in said:
            return 200, _REFUSED, _refusal(said)
        if not said.get("code"):
            return 400, _FOREIGN, AuthorizationFailed("the authorization server answered without a code")
        return 200, _DONE, Consent(said["code"], state, said.get("iss"))


@asynccontextmanager
async def listening(port: int = 0) -> AsyncIterator[Callback]:
    """Listen on this machine's own address while the block runs.

    :param port: 0: any that is free
    :raises AuthorizationFailed: if the port is taken
    """
    try:
        listener = await anyio.create_tcp_listener(local_host=_HOST, local_port=port)
    except OSError as error:
        raise AuthorizationFailed(f"port {port} cannot be listened on ({error.strerror}); name another") from error
    async with listener, anyio.create_task_group() as tasks:
        callback = Callback(listener.extra(SocketAttribute.local_port))  # noqa: S610
        tasks.start_soon(listener.serve, callback.handle)
        yield callback
        tasks.cancel_scope.cancel()


async def _request(connection: h11.Connection, stream: ByteStream) -> h11.Request:
    while True:
        event = connection.next_event()
        if isinstance(event, h11.Request):
            return event
        if event is not h11.NEED_DATA:
            raise anyio.EndOfStream
        connection.receive_data(await stream.receive())


def _refusal(said: dict[str, str]) -> AuthorizationFailed:
    code, description = error_code(said["error"]) or "error", shown(said.get("error_description", ""))
    return AuthorizationFailed(f"the authorization was refused ({code}{': ' if description else ''}{description})")
