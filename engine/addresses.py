"""Moved to ``engine/net``; here only until the last user has moved too."""

from __future__ import annotations

from engine.net.addresses import Address, is_public, literal_address, looks_numeric
from engine.net.allow_list import AllowList

__all__ = ("Address", "AllowList", "is_public", "literal_address", "looks_numeric")
