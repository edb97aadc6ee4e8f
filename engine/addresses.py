"""Which addresses are public: our own deny table, because the interpreter's differs between versions and has holes."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Final, TypeAlias

import msgspec

__all__ = ("Address", "AllowList", "is_public", "literal_address", "looks_numeric")

Address: TypeAlias = IPv4Address | IPv6Address

_V4_DENIED: Final = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this network; 0.0.0.0 reaches the machine itself
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier NAT; a cloud keeps its metadata there
        "127.0.0.0/8",
        "168.63.129.16/32",  # a cloud's own services, on an address that looks public
        "169.254.0.0/16",  # link-local, and most clouds' metadata
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
)
_V6_PUBLIC: Final = IPv6Network("2000::/3")
_V6_DENIED: Final = tuple(
    IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments, Teredo among them
        "2001:db8::/32",
        "2002::/16",  # 6to4: an IPv4 address in disguise
        "3fff::/20",
    )
)
_NAT64: Final = IPv6Network("64:ff9b::/96")


def is_public(address: Address) -> bool:
    """Tell whether an address is one that anybody on the internet may reach.

    An IPv4 address inside an IPv6 one (mapped, or NAT64's) is judged as what it is; every other disguise, whatever is
    not global unicast, and anything with a zone is refused.
    """
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _V4_DENIED)
    if address.scope_id is not None:
        return False
    if address.ipv4_mapped is not None:
        return is_public(address.ipv4_mapped)
    if address in _NAT64:
        return is_public(IPv4Address(int(address) & 0xFFFFFFFF))
    return address in _V6_PUBLIC and not any(address in network for network in _V6_DENIED)


def literal_address(host: str) -> Address | None:
    """Return the address that a host is, in its canonical spelling (no brackets); None for a name."""
    try:
        return ip_address(host)
    except ValueError:
        return None


def looks_numeric(host: str) -> bool:
    """Tell whether a host that is no canonical address is read as one all the same: ``127.1``, ``0x7f000001``.

    That is so if its last label is a number (the URL standard's "ends in a number").
    """
    last = host.removesuffix(".").rpartition(".")[2].lower()
    digits = "0123456789abcdef" if last.startswith("0x") else "0123456789"
    return bool(last) and set(last.removeprefix("0x")) <= set(digits)


class AllowList(msgspec.Struct, frozen=True):
    """What an operator lets tools reach although it is not public: names, addresses, networks, each with a port or not.

    A name covers whatever it resolves to; ``host:port`` and ``[address]:port`` cover that port only.

    :raises ValueError: if an entry is none of these
    """

    entries: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for entry in self.entries:
            _parse(entry)

    def covers(self, host: str, port: int, addresses: Sequence[Address] = ()) -> bool:
        """Tell whether the host's name, or every one of its addresses, is allowed on this port."""
        rules = [(what, bound) for what, bound in map(_parse, self.entries) if bound is None or bound == port]
        if any(what == host for what, _ in rules if isinstance(what, str)):
            return True
        networks = [what for what, _ in rules if not isinstance(what, str)]
        return bool(addresses) and all(any(address in network for network in networks) for address in addresses)


_Rule: TypeAlias = tuple[str | IPv4Network | IPv6Network, int | None]


def _parse(entry: str) -> _Rule:
    host, port = entry.strip().lower(), None
    head, colon, tail = host.rpartition(":")
    if colon and tail.isdigit() and (head.endswith("]") or ":" not in head):
        host, port = head, int(tail)
    host = host.removeprefix("[").removesuffix("]").removesuffix(".")
    if not host:
        raise ValueError(f"{entry!r} in allow_hosts is no host, address or network")
    try:
        return ip_network(host, strict=False), port
    except ValueError:
        if "/" in host or ":" in host or " " in host:
            raise ValueError(f"{entry!r} in allow_hosts is no host, address or network") from None
        return host, port
