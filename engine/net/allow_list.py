"""What an operator lets tools reach although it is not public."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import TypeAlias

import msgspec

from engine.net.addresses import Address

__all__ = ("AllowList",)

_Rule: TypeAlias = tuple[str | IPv4Network | IPv6Network, int | None]


class AllowList(msgspec.Struct, frozen=True):
    """Names, addresses and networks, each with a port or not.

    A name covers whatever it resolves to, on any port; ``host:port``, ``address:port``, ``[address]:port`` and
    ``network:port`` cover that port only.

    :raises ValueError: if an entry is none of these
    """

    entries: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for entry in self.entries:
            _parsed(entry)

    @classmethod
    def of(cls, text: str) -> AllowList:
        """Read entries that stand in one text, between commas or white space. :raises ValueError: if one is none"""
        return cls(tuple(text.replace(",", " ").split()))

    def covers(self, host: str, port: int, addresses: Sequence[Address] = ()) -> bool:
        """Tell whether the host's name, or every one of its addresses, is allowed on this port."""
        if not self.entries:
            return False
        rules = [what for what, bound in _rules(self.entries) if bound is None or bound == port]
        if any(what == host for what in rules if isinstance(what, str)):
            return True
        networks = [what for what in rules if not isinstance(what, str)]
        return bool(addresses) and all(any(address in network for network in networks) for address in addresses)


@lru_cache(maxsize=64)
def _rules(entries: tuple[str, ...]) -> tuple[_Rule, ...]:
    return tuple(map(_parsed, entries))


def _parsed(entry: str) -> _Rule:
    host, port = entry.strip().lower(), None
    head, colon, tail = host.rpartition(":")
    if colon and tail.isdigit() and (head.endswith("]") or ":" not in head):
        host, port = head, int(tail)
    host = host.removeprefix("[").removesuffix("]").removesuffix(".")
    if not host:
        raise ValueError(f"{entry!r} in the allow list is no host, address or network")
    try:
        return ip_network(host, strict=False), port
    except ValueError:
        if not set(host).isdisjoint("/:@? "):
            raise ValueError(f"{entry!r} in the allow list is no host, address or network") from None
        return host, port
