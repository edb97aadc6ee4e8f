"""What a server sends, looked at before the driver sees it: how much there is, and what it asks for at the beginning.

A row's owner says which server that is, so it may be anybody's: it must not fill the memory, keep the engine busy with
a password's hash for an hour, or be given what is not the row's.
"""

from __future__ import annotations

import re
from typing import Any, Final

__all__ = ("Guard", "Watch")

_GREETING: Final = 256 * 1024
"""Bytes that a server may send until it has let somebody in."""
_ITERATIONS: Final = re.compile(rb"(?:^|,)i=(\d{1,20})(?:,|$)")
_MOST_ITERATIONS: Final = 600_000
_OK, _CLEAR, _SASL_CONTINUE = 0, 3, 11
_KERBEROS: Final = (2, 7, 8, 9)


class Watch:
    """Over one connection.

    :ivar largest: bytes that may come for one request; beyond, the connection is cut
    :ivar problem: why it was cut
    :ivar too_large: whether that was the reason
    :ivar refused_tls: whether the server said that it takes no TLS
    """

    def __init__(self, largest: int, encrypted: bool) -> None:
        self.largest = largest
        self.encrypted = encrypted
        self.problem: str | None = None
        self.too_large = False
        self.refused_tls = False
        self._received = 0
        self._greeting: bytearray | None = bytearray()

    def __repr__(self) -> str:
        return f"<Watch {self.problem or 'all well'}, {self._received} bytes>"

    def begin(self) -> None:
        """Begin to count anew: another request is sent."""
        self._received = 0

    def sees(self, data: Any) -> bool:
        """Look at what came; False: the connection must be cut."""
        self._received += len(data)
        if self._received > self.largest:
            self.too_large = True
            self.problem = f"it sends more than {self.largest:,} bytes at once"
        elif self._greeting is not None:
            self._greeting += data
            self._read(self._greeting)
        return self.problem is None

    def _read(self, greeting: bytearray) -> None:
        """Look at the messages of the beginning that are there whole."""
        while len(greeting) >= 5 and self.problem is None and self._greeting is not None:
            length = 1 + int.from_bytes(greeting[1:5], "big")
            if length < 5 or length > _GREETING:
                self.problem = "it is no Postgres server"
            elif len(greeting) < length:
                return
            else:
                if greeting[:1] == b"R":
                    self._asked(bytes(greeting[5:length]))
                del greeting[:length]

    def _asked(self, message: bytes) -> None:
        """Look at what the server asks for, to know who is there."""
        kind = int.from_bytes(message[:4], "big")
        if kind == _OK:
            self._greeting = None
        elif kind in _KERBEROS:
            self.problem = "it asks for Kerberos, which is not used"
        elif kind == _CLEAR and not self.encrypted:
            self.problem = "it asks for the password in clear without TLS; add sslmode=require"
        elif kind == _SASL_CONTINUE:
            found = _ITERATIONS.search(message[4:])
            if found is None or int(found[1]) > _MOST_ITERATIONS:
                self.problem = "it asks for a password hashed in an unusual way"


class Guard:
    """Between a transport of asyncio and the driver's protocol."""

    def __init__(self, protocol: Any, watch: Watch) -> None:
        self.protocol = protocol
        self._watch = watch
        self._transport: Any = None

    def connection_made(self, transport: Any) -> None:
        """As asyncio's protocols have it."""
        self._transport = transport
        self.protocol.connection_made(transport)

    def over(self, transport: Any) -> Guard:
        """Take over a transport whose connection the protocol knows already."""
        self._transport = transport
        return self

    def data_received(self, data: Any) -> None:
        """Give on what came; nothing of what is too much."""
        if self._watch.problem is not None:
            return
        if self._watch.sees(data):
            self.protocol.data_received(data)
        else:
            self._transport.abort()

    def eof_received(self) -> Any:
        """As asyncio's protocols have it."""
        return self.protocol.eof_received()

    def connection_lost(self, error: BaseException | None) -> None:
        """As asyncio's protocols have it."""
        self.protocol.connection_lost(error)

    def pause_writing(self) -> None:
        """As asyncio's protocols have it."""
        self.protocol.pause_writing()

    def resume_writing(self) -> None:
        """As asyncio's protocols have it."""
        self.protocol.resume_writing()
