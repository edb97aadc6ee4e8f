"""What is said of a failed exchange: never what the HTTP library says, which quotes the request and the response."""

from __future__ import annotations

import ssl
from typing import Final

__all__ = ("said_of",)

_SAID: Final = (
    ("ConnectError", "nobody takes connections there"),
    ("ConnectTimeout", "it does not answer"),
    ("PoolTimeout", "too many requests are under way"),
    ("LocalProtocolError", "the request holds characters that HTTP does not allow"),
    ("RemoteProtocolError", "it is incomplete, or no HTTP"),
    ("ReadTimeout", "nothing came for too long"),
    ("WriteTimeout", "nothing was taken for too long"),
)


def said_of(error: Exception) -> str:
    """Return a text of our own for an error of httpcore, or of one of its kin."""
    # The library cuts the chain off on its way out; what it caught is still the context.
    reason = error.__cause__ or error.__context__
    if isinstance(reason, ssl.SSLCertVerificationError):
        return "its certificate is not trusted, or is another host's"
    if isinstance(reason, ssl.SSLError):
        return "there is no TLS with it"
    return dict(_SAID).get(type(error).__name__, "the connection was lost")
