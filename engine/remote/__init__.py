"""What tools of one outside service share: its address, one request to it, what went wrong with that."""

from __future__ import annotations

from engine.remote.request import RemoteRequest
from engine.remote.service_error import ServiceError

__all__ = ("RemoteRequest", "ServiceError")
