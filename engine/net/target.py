"""Where a URL leads: whether a tool may go there, and to which addresses exactly.

It is judged before anything is connected to, anew for every request and every redirect; the socket is then opened to
one of the addresses that were judged, never to what a second look-up says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import ip_address
from itertools import chain, zip_longest
from typing import Final, TypeAlias

import msgspec

from engine.net.addresses import Address, is_public, literal_address, looks_numeric
from engine.net.errors import Unreachable, UnsafeReason, UnsafeUserUrlError
from engine.net.policy import NetPolicy
from engine.net.resolver import Resolver

__all__ = ("Target",)

_Addresses: TypeAlias = tuple[Address, ...]

_DEFAULT_PORTS: Final = (("http", 80), ("https", 443))
_NAME: Final = re.compile(r"(?!-)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*")
_LOCAL: Final = frozenset({"localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback", "metadata"})
_LOCAL_ENDS: Final = (".localhost", ".google.internal")
_SAID: Final[tuple[tuple[UnsafeReason, str], ...]] = (
    ("malformed", "is not a valid host"),
    ("zone_id", "is an address of one network card"),
    ("local_name", "is not a public host"),
    ("address_spelling", "is an unusual spelling of an address"),
    ("not_public", "is not, or not only, at a public address"),
)


class Target(msgspec.Struct, frozen=True):
    """A scheme, a host (in ASCII and lower case, without brackets or the root's dot) and a port.

    :ivar subject: what texts call the host: its name, or no more than that one redirects to it
    """

    scheme: str
    host: str
    port: int
    subject: str

    @classmethod
    def of(
        cls,
        scheme: str,
        raw_host: bytes,
        port: int | None,
        userinfo: bytes,
        policy: NetPolicy,
        *,
        redirected: bool = False,
    ) -> Target:
        """Take a parsed URL's parts.

        :param redirected: whether a response named the URL; its parts are not in the error's text then
        :raises UnsafeUserUrlError: if a URL of that form may not be opened, wherever it leads
        """
        if scheme not in policy.schemes or scheme not in dict(_DEFAULT_PORTS):
            named = "another one" if redirected else scheme[:20] or "no scheme"
            raise UnsafeUserUrlError("scheme", f"only {_listed(policy.schemes)} are allowed, not {named}")
        host = raw_host.decode("ascii", "replace").lower().removesuffix(".")
        if not host:
            raise UnsafeUserUrlError("no_host", "it has no host")
        if userinfo:
            raise UnsafeUserUrlError("userinfo", "it carries a user name or password")
        if port is not None and not 0 < port < 65536:
            raise UnsafeUserUrlError("port", "it has a port that does not exist")
        subject = "the host it redirects to" if redirected else host
        return cls(scheme, host, dict(_DEFAULT_PORTS)[scheme] if port is None else port, subject)

    async def addresses(self, policy: NetPolicy, resolver: Resolver) -> _Addresses:
        """Return the host's addresses, all of them allowed, in the order in which to try them.

        A name is asked for once; a literal address, and what is refused by its spelling, not at all.

        :raises UnsafeUserUrlError: if one of them, or the port, is not allowed
        :raises Unreachable: if there are none
        """
        literal = literal_address(self.host)
        self._check_spelling(literal, policy)
        found = (literal,) if literal is not None else await self._resolved(resolver)
        if policy.allow.covers(self.host, self.port, found):
            return found
        if not all(map(is_public, found)):
            raise self._unsafe("not_public")
        if self.port not in policy.ports:
            named = f"port {self.port}" if self.is_named else "the port it redirects to"
            raise UnsafeUserUrlError("port", f"{named} is not allowed")
        return found

    @property
    def is_named(self) -> bool:
        """Whether texts may name the host: no response did."""
        return self.subject == self.host

    def _check_spelling(self, literal: Address | None, policy: NetPolicy) -> None:
        if "%" in self.host:
            raise self._unsafe("zone_id" if ":" in self.host else "malformed")
        if literal is not None:
            return
        if looks_numeric(self.host):
            raise self._unsafe("address_spelling")
        if not _NAME.fullmatch(self.host):
            raise self._unsafe("malformed")
        if (self.host in _LOCAL or self.host.endswith(_LOCAL_ENDS)) and not policy.allow.covers(self.host, self.port):
            raise self._unsafe("local_name")

    def _unsafe(self, reason: UnsafeReason) -> UnsafeUserUrlError:
        return UnsafeUserUrlError(reason, f"{self.subject} {dict(_SAID)[reason]}")

    async def _resolved(self, resolver: Resolver) -> _Addresses:
        try:
            found = [ip_address(each) for each in await resolver(self.host, self.port)]
        except (OSError, ValueError):
            found = []
        if not found:
            raise Unreachable(f"there is no host {self.host}" if self.is_named else "there is no such host")
        return _in_turns(found)


def _in_turns(addresses: Iterable[Address]) -> _Addresses:
    """Order addresses so that the two families take turns, the resolver's first choice of them first.

    The order does not depend on how a name server shuffled them: the same addresses are the same key of a pool.
    """
    first, second = [sorted(each, key=int) for each in _by_family(dict.fromkeys(addresses))]
    return tuple(each for each in chain.from_iterable(zip_longest(first, second)) if each is not None)


def _by_family(addresses: dict[Address, None]) -> tuple[list[Address], list[Address]]:
    version = next(iter(addresses)).version
    preferred = [each for each in addresses if each.version == version]
    return preferred, [each for each in addresses if each.version != version]


def _listed(schemes: frozenset[str]) -> str:
    return " and ".join(sorted(schemes))
