"""Fetching from the public web: every hop's address is checked, and the connection goes to what was checked.

A hop is resolved once; every address it has must be public (or allowed); the socket is opened to one of those very
addresses, with the Host header and the TLS name of the URL. Proxies of the environment, cookies and credentials play no
part.
"""

from __future__ import annotations

import socket
import ssl
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cache
from ipaddress import ip_address
from typing import Any, Final, TypeAlias

import anyio
import httpx
import msgspec

from engine.addresses import Address, AllowList, is_public, literal_address, looks_numeric
from events.errors import Refused

__all__ = ("FetchError", "FetchPolicy", "Fetched", "Resolver", "TooLarge", "UnsafeAddress", "fetch", "resolve")

Resolver: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
"""Takes a host name and a port, returns its addresses as text; an OSError says that there are none."""

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_ATTEMPTS: Final = 3
_CONNECT: Final = 8.0
_USER_AGENT: Final = "calljournal/0.1"


class FetchError(Refused):
    """The page could not be fetched; the text is fit for a model and says nothing of what a refused address holds."""


class UnsafeAddress(FetchError):
    """The URL, or one it redirects to, is none that a tool may open."""


class TooLarge(FetchError):
    """The body, decoded, is larger than allowed."""


class FetchPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What may be fetched.

    :ivar allow: hosts and networks that are allowed although they are not public, on any port
    :ivar ports: ports allowed otherwise
    :ivar redirects: how many redirects are followed
    :ivar largest: bytes of a decoded body
    :ivar deadline: seconds for everything together
    """

    allow: AllowList = AllowList()
    ports: frozenset[int] = frozenset({80, 443, 8080, 8443})
    redirects: int = 5
    largest: int = 10 * 1024 * 1024
    deadline: float = 25.0


class Fetched(msgspec.Struct, frozen=True, kw_only=True):
    """A response: the URL it came from in the end, its status, its content type in lower case ("" if it has none)."""

    url: str
    status: int
    content_type: str
    charset: str | None
    body: bytes


async def resolve(host: str, port: int) -> Sequence[str]:
    """Return every address the system's resolver has for a name. :raises OSError: if it has none"""
    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


async def fetch(
    url: str, policy: FetchPolicy, resolver: Resolver = resolve, tls: ssl.SSLContext | None = None
) -> Fetched:
    """GET a page, following redirects; each hop is checked anew.

    :param tls: whose certificates are trusted; None: the public authorities'
    :raises UnsafeAddress: if the URL or a redirect's target may not be opened; nothing was connected to
    :raises TooLarge: if the body is larger than the policy allows
    :raises FetchError: if there is no such host, no connection, no whole response in time, or no end of redirects
    """
    try:
        with anyio.fail_after(policy.deadline):
            return await _follow(_parsed(url), policy, resolver, tls)
    except TimeoutError:
        raise FetchError(f"it took longer than {policy.deadline:g} s") from None


async def _follow(url: httpx.URL, policy: FetchPolicy, resolver: Resolver, tls: ssl.SSLContext | None) -> Fetched:
    for _ in range(policy.redirects + 1):
        addresses = await _checked(url, policy, resolver)
        async with _opened(url, addresses, tls) as response:
            if response.status_code not in _REDIRECTS:
                return await _read(url, response, policy.largest)
            target = response.headers.get("location")
        if not target:
            raise FetchError("it responded with a redirect but no target location")
        url = _parsed(target, url)
    raise FetchError(f"it redirects more than {policy.redirects} times")


def _parsed(url: str, base: httpx.URL | None = None) -> httpx.URL:
    """Return the URL, without its fragment.

    :raises UnsafeAddress: if it is none that can be opened: another scheme, no host, credentials
    """
    try:
        parsed = httpx.URL(url) if base is None else base.join(url)
    except (httpx.InvalidURL, ValueError) as error:
        raise UnsafeAddress(f"it is not a valid URL ({error})") from None
    if parsed.scheme not in ("http", "https"):
        raise UnsafeAddress(f"only http and https are allowed, not {parsed.scheme or 'no scheme'}")
    if not parsed.host:
        raise UnsafeAddress("it has no host")
    if parsed.port is not None and not 0 < parsed.port < 65536:
        raise UnsafeAddress(f"there is no port {parsed.port}")
    if parsed.userinfo:
        raise UnsafeAddress("it carries a user name or password")
    return parsed.copy_with(fragment=None)


async def _checked(url: httpx.URL, policy: FetchPolicy, resolver: Resolver) -> list[Address]:
    """Return the addresses of a URL's host, all of them allowed.

    :raises UnsafeAddress: if one is not
    :raises FetchError: if it has none
    """
    host, port = _host_of(url), _port_of(url)
    if policy.allow.covers(host, port):
        return await _addresses(host, port, resolver)
    if "%" in host or host == "localhost" or host.endswith(".localhost"):
        raise UnsafeAddress(f"{host} is not a public host")
    if literal_address(host) is None and looks_numeric(host):
        raise UnsafeAddress(f"{host} is an unusual spelling of an address")
    addresses = await _addresses(host, port, resolver)
    if policy.allow.covers(host, port, addresses):
        return addresses
    if port not in policy.ports:
        raise UnsafeAddress(f"port {port} is not allowed")
    if not all(is_public(address) for address in addresses):
        raise UnsafeAddress(f"{host} is not, or not only, at a public address")
    return addresses


async def _addresses(host: str, port: int, resolver: Resolver) -> list[Address]:
    literal = literal_address(host)
    if literal is not None:
        return [literal]
    try:
        found = await resolver(host, port)
        addresses = list(dict.fromkeys(ip_address(each) for each in found))
    except (OSError, ValueError, UnicodeError):
        addresses = []
    if not addresses:
        raise FetchError(f"there is no host {host}")
    return addresses


def _host_of(url: httpx.URL) -> str:
    """Return the host as the resolver and TLS take it: in ASCII, without the root's dot."""
    return url.raw_host.decode("ascii").lower().removesuffix(".")


def _port_of(url: httpx.URL) -> int:
    return (443 if url.scheme == "https" else 80) if url.port is None else url.port


@asynccontextmanager
async def _opened(
    url: httpx.URL, addresses: Sequence[Address], tls: ssl.SSLContext | None
) -> AsyncIterator[httpx.Response]:
    """Open the URL at the first of its addresses that answers; the body is not read yet.

    :raises FetchError: if none does
    """
    client = httpx.AsyncClient(
        # Plain http has nothing to verify, and loading the certificates takes 20 ms.
        verify=(tls or _public_authorities()) if url.scheme == "https" else False,
        trust_env=False,
        follow_redirects=False,
        timeout=httpx.Timeout(None, connect=_CONNECT),
        limits=httpx.Limits(max_keepalive_connections=0),
    )
    async with client:
        response = await _send(client, url, addresses)
        try:
            yield response
        except httpx.HTTPError as error:
            raise FetchError(f"the response broke off ({type(error).__name__})") from None
        finally:
            await response.aclose()


@cache
def _public_authorities() -> ssl.SSLContext:
    return httpx.create_ssl_context(trust_env=False)


async def _send(client: httpx.AsyncClient, url: httpx.URL, addresses: Sequence[Address]) -> httpx.Response:
    headers = {
        "Host": url.netloc.decode("ascii"),
        "User-Agent": _USER_AGENT,
        "Accept": "text/html, text/*;q=0.9, application/xhtml+xml, application/json, application/xml;q=0.8",
        "Accept-Encoding": "gzip",
    }
    for number, address in enumerate(addresses[:_ATTEMPTS], start=1):
        pinned = url.copy_with(host=str(address))
        request = client.build_request("GET", pinned, headers=headers, extensions={"sni_hostname": _host_of(url)})
        try:
            return await client.send(request, stream=True)
        except httpx.TransportError as error:
            if number == min(len(addresses), _ATTEMPTS):
                raise FetchError(f"no connection to {url.host} ({type(error).__name__})") from None
    raise FetchError(f"no connection to {url.host}")


async def _read(url: httpx.URL, response: httpx.Response, largest: int) -> Fetched:
    content_type, _, parameters = response.headers.get("content-type", "").partition(";")
    return Fetched(
        url=str(url),
        status=response.status_code,
        content_type=content_type.strip().lower(),
        charset=_charset_in(parameters),
        body=b"" if response.status_code >= 400 else await _body(response, largest),
    )


def _charset_in(parameters: str) -> str | None:
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip("\"'") or None
    return None


async def _body(response: httpx.Response, largest: int) -> bytes:
    """Read a body, decoded, never holding more of it than is allowed plus one piece.

    :raises TooLarge: if it is larger
    """
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip", "x-gzip", ""):
        raise FetchError(f"it is encoded as {encoding}, which was not asked for")
    decode = _Gunzip() if "gzip" in encoding else None
    body = bytearray()
    async with _pieces(response) as pieces:
        async for piece in pieces:
            body += piece if decode is None else decode(piece, largest - len(body) + 1)
            if len(body) > largest:
                raise TooLarge(f"it is larger than {largest} bytes")
    return bytes(body)


@asynccontextmanager
async def _pieces(response: httpx.Response) -> AsyncIterator[AsyncIterator[bytes]]:
    """Give out a body's pieces as they are on the wire; the reading may be broken off at any point."""
    pieces = response.aiter_raw()
    try:
        yield pieces
    except FetchError:
        # The client's own generators, one inside another, are left unfinished by whoever stops reading; asked again
        # after the connection is closed, they end.
        await response.aclose()
        with suppress(httpx.HTTPError, httpx.StreamError):
            async for _ in pieces:
                pass
        raise


class _Gunzip:
    """Unpacks gzip piece by piece, at most so many bytes of each: a bomb is noticed, not unpacked."""

    def __init__(self) -> None:
        self._unpack: Any = zlib.decompressobj(wbits=31)

    def __call__(self, piece: bytes, at_most: int) -> bytes:
        out = bytearray()
        try:
            while piece and len(out) < at_most:
                out += self._unpack.decompress(piece, at_most - len(out))
                piece = self._unpack.unconsumed_tail
                if self._unpack.eof:
                    piece = self._unpack.unused_data
                    self._unpack = zlib.decompressobj(wbits=31)
        except zlib.error:
            raise FetchError("its gzip encoding is broken") from None
        return bytes(out)
