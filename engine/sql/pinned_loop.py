"""The event loop as the database's driver is given it: connections go to checked addresses alone, and are watched.

The driver asks its loop for connections by the host's name, one for a session and one for each cancellation. Here a
socket to an address that was checked is what it gets; TLS still goes by the name.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from engine.net.dialling import dial
from engine.sql.host_policy import Place
from engine.sql.watch import Guard, Watch

__all__ = ("PinnedLoop",)


class PinnedLoop:
    """Whatever is not about connecting is the loop's own."""

    def __init__(self, loop: Any, place: Place, watch: Watch) -> None:
        self._loop = loop
        self._place = place
        self._watch = watch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)

    async def create_connection(self, factory: Callable[[], Any], *_: Any, **__: Any) -> tuple[Any, Any]:
        """Connect to the place, whatever host is named. :raises OSError: if nobody takes the connection"""
        dialled = await dial(self._dialled, self._place.addresses, (OSError,))
        try:
            guarded = _upgrading if self._watch.encrypted else Guard
            transport, guard = await self._loop.create_connection(
                lambda: guarded(factory(), self._watch), sock=dialled.socket
            )
        except BaseException:
            dialled.socket.close()
            raise
        return transport, guard.protocol

    async def start_tls(self, transport: Any, protocol: Any, context: Any, **_: Any) -> Any:
        """Begin TLS with the host that the row names. :raises ssl.SSLError: if there is none with it"""
        secured = await self._loop.start_tls(
            transport, protocol, context, server_hostname=self._place.dsn.host, ssl_handshake_timeout=10.0
        )
        return None if secured is None else _Secured(secured, self._watch)

    async def _dialled(self, address: str) -> _Dialled:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        dialled = _Dialled(socket.socket(family, socket.SOCK_STREAM))
        try:
            dialled.socket.setblocking(False)
            await self._loop.sock_connect(dialled.socket, (address, self._place.dsn.port))
        except BaseException:
            dialled.socket.close()
            raise
        return dialled


class _Dialled:
    """A socket that is connected."""

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected

    async def aclose(self) -> None:
        """Close it."""
        self.socket.close()


class _Secured:
    """A transport inside TLS; the protocol that is set on it is guarded."""

    def __init__(self, transport: Any, watch: Watch) -> None:
        self._transport = transport
        self._watch = watch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def set_protocol(self, protocol: Any) -> None:
        """Set the protocol, behind a guard."""
        self._transport.set_protocol(Guard(protocol, self._watch).over(self._transport))


class _Upgrade(Guard):
    """Before TLS: one byte, by which the server says whether it takes any."""

    def data_received(self, data: Any) -> None:
        """Give on the answer; more than one byte is none, and came from somebody in between."""
        if bytes(data) == b"N":
            self._watch.refused_tls = True
        if len(data) == 1:
            self.protocol.data_received(data)
        else:
            self._watch.problem = "it is no Postgres server"
            self._transport.abort()

    def connection_lost(self, error: BaseException | None) -> None:
        """Tell the driver's protocol; that it may have been cancelled meanwhile is nothing to complain about."""
        self.protocol.connection_lost(error)
        waiter = getattr(self.protocol, "on_data", None)
        if waiter is not None and waiter.done() and not waiter.cancelled():
            waiter.exception()


def _upgrading(protocol: Any, watch: Watch) -> Guard:
    return _Upgrade(protocol, watch)
