"""What can go wrong with a request that a tool sends out; each text is fit for a model.

No text holds a user name, a password, a query string or a header's value, nor anything that an inward target said.
"""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

from events.errors import Refused

__all__ = (
    "BadResponse",
    "DeadlineExceeded",
    "NetError",
    "ResponseTooLarge",
    "TooManyRedirects",
    "Unreachable",
    "UnsafeReason",
    "UnsafeUserUrlError",
)

UnsafeReason: TypeAlias = Literal[
    "malformed",
    "scheme",
    "no_host",
    "userinfo",
    "zone_id",
    "local_name",
    "address_spelling",
    "port",
    "not_public",
]
"""Why a URL may not be opened. ``address_spelling``: a host that is a number, but no address as addresses are written;
``zone_id``: an IPv6 address of one network card; ``not_public``: an address (of several, one is enough) that not
everybody on the internet reaches."""


class NetError(Refused):
    """The request was not sent, or brought no usable response.

    :cvar code: what kind of failure, for programs
    """

    code: ClassVar[str] = "net"


class UnsafeUserUrlError(NetError, ValueError):
    """The URL, or one that it redirects to, is none that a tool may open; nothing was connected to.

    :ivar reason: why
    """

    code = "unsafe_url"

    def __init__(self, reason: UnsafeReason, text: str) -> None:
        super().__init__(text)
        self.reason: UnsafeReason = reason

    def __reduce__(self) -> tuple[type[UnsafeUserUrlError], tuple[UnsafeReason, str]]:
        return type(self), (self.reason, str(self))


class Unreachable(NetError):
    """There is no such host, or nobody at its addresses took the connection."""

    code = "unreachable"


class BadResponse(NetError):
    """The response broke off, is no HTTP, or is encoded otherwise than it says."""

    code = "bad_response"


class TooManyRedirects(NetError):
    """One redirect led to the next more often than is followed."""

    code = "too_many_redirects"


class ResponseTooLarge(NetError):
    """The body, decoded, is larger than allowed."""

    code = "too_large"


class DeadlineExceeded(NetError):
    """The whole of it (resolving, connecting, redirects, the body to its end) took longer than allowed."""

    code = "deadline"
