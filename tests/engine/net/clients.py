"""A client for one test, closed at its end as an engine closes it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from engine.net import NetPolicy, Resolver
from engine.net.client import SafeClient, safe_client
from engine.services import Services

__all__ = ("client_of",)


@asynccontextmanager
async def client_of(
    allowed: NetPolicy, resolver: Resolver | None = None, tls: object = None
) -> AsyncIterator[SafeClient]:
    """Give out the one client of an engine's services."""
    services = Services(allowed, resolver=resolver, tls=tls)
    try:
        yield services.shared(safe_client)
    finally:
        await services.aclose()
