"""The one policy for every request that a tool sends out, and its errors. The client is in ``client``."""

from engine.net.allow_list import AllowList
from engine.net.errors import (
    BadResponse,
    DeadlineExceeded,
    NetError,
    ResponseTooLarge,
    TooManyRedirects,
    Unreachable,
    UnsafeReason,
    UnsafeUserUrlError,
)
from engine.net.policy import NetPolicy
from engine.net.resolver import Resolver, system_resolver

__all__ = (
    "AllowList",
    "BadResponse",
    "DeadlineExceeded",
    "NetError",
    "NetPolicy",
    "Resolver",
    "ResponseTooLarge",
    "TooManyRedirects",
    "Unreachable",
    "UnsafeReason",
    "UnsafeUserUrlError",
    "system_resolver",
)
