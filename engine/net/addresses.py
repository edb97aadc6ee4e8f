"""Which addresses are public: our own deny table, because the interpreter's differs between versions and has holes."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final, TypeAlias

__all__ = ("Address", "is_public", "literal_address", "looks_numeric")

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
    if not host[-1:].isdigit() and ":" not in host:
        return None
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
