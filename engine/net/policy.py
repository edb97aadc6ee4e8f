"""The one policy for every request that a tool sends out."""

from __future__ import annotations

import msgspec

from engine.net.allow_list import AllowList

__all__ = ("NetPolicy",)


class NetPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What may be reached, and how much of it. It is the operator's; no tool and no row's owner can widen it.

    :ivar allow: hosts and networks that are allowed although they are not public, on any port
    :ivar ports: ports allowed otherwise
    :ivar schemes: of URLs
    :ivar redirects: how many redirects of one request are followed, each counted
    :ivar largest: bytes of a decoded body, at most, whatever a caller asks for
    :ivar deadline: seconds for one request with its redirects and body, at most, whatever a caller asks for
    :ivar connect: seconds for one connection, TLS included
    :ivar connections: open at the same time
    :ivar user_agent: sent where the caller names none
    """

    allow: AllowList = AllowList()
    ports: frozenset[int] = frozenset({80, 443, 8080, 8443})
    schemes: frozenset[str] = frozenset({"http", "https"})
    redirects: int = 5
    largest: int = 32 * 1024 * 1024
    deadline: float = 300.0
    connect: float = 8.0
    connections: int = 100
    user_agent: str = "calljournal/0.1"
