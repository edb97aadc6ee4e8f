"""From a host's name to all of its addresses."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

import anyio

__all__ = ("Resolver", "system_resolver")

Resolver: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
"""Takes a host name and a port, returns its addresses as text; an OSError says that there are none."""


async def system_resolver(host: str, port: int) -> Sequence[str]:
    """Return every address the system's resolver has for a name. :raises OSError: if it has none"""
    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]
