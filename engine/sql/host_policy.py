"""Whether a database may be reached, and at which addresses exactly: the operator's policy of every outgoing request.

Public addresses, or what the operator allows; all of a host's records are checked. The connection then goes to one of
the addresses that were checked, never to what a second look-up says.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Final

import msgspec
from msgspec.structs import replace

from engine.net.errors import NetError, UnsafeUserUrlError
from engine.net.policy import NetPolicy
from engine.net.resolver import Resolver
from engine.net.target import Target
from engine.sql.dsn import Dsn
from engine.sql.errors import SqlError

__all__ = ("PORTS", "Place", "checked_place")

PORTS: Final = frozenset({5432, 6432, 6543})
"""Of public hosts: Postgres's own port, and those that poolers in front of it have. Others need the allow list."""


class Place(msgspec.Struct, frozen=True):
    """A database that may be reached.

    :ivar addresses: those of its host, in the order in which to try them
    :ivar inward: only the operator's allow list lets it be reached
    """

    dsn: Dsn
    addresses: tuple[str, ...]
    inward: bool


async def checked_place(dsn: Dsn, policy: NetPolicy, resolver: Resolver) -> Place:
    """Return where a database is. :raises SqlError: if it may not be reached, or there is no such host"""
    target = Target("postgresql", dsn.host, dsn.port, "the database's host")
    try:
        found = await target.addresses(replace(policy, ports=PORTS), resolver)
    except UnsafeUserUrlError as error:
        said = f"port {dsn.port} is not allowed for a database" if error.reason == "port" else str(error)
        raise SqlError(f"{said}; only an operator can allow it") from None
    except NetError as error:
        raise SqlError(str(error)) from None
    inward = policy.allow.covers(dsn.host, dsn.port, found)
    return Place(dsn, tuple(str(ip_address(each)) for each in found), inward)
