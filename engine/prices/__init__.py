"""Prices of currencies, from whom they are asked, and the one form they come in."""

from __future__ import annotations

from engine.prices.quote import Quote, Wanted

__all__ = ("Quote", "Wanted")
