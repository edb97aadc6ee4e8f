"""CoinGecko's interface: spot prices by symbol, where the first service has none to give."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import msgspec

from engine.prices.quote import Quote, Wanted, number, stamp
from engine.remote.exchange import Exchange
from engine.remote.request import RemoteRequest
from engine.remote.service_error import ServiceError

__all__ = ("CoinGecko",)


class CoinGecko(msgspec.Struct, frozen=True):
    """Access with a row's key, or without one; its ``repr`` does not show it.

    A symbol that several coins share is the largest one's.
    """

    address: str
    key: str

    name = "CoinGecko"

    def __repr__(self) -> str:
        return f"<CoinGecko {self.address}>"

    def requests(self, wanted: Wanted) -> list[RemoteRequest]:
        """Return what is sent. Keys of paying customers go with another host, in another header."""
        pays = (urlsplit(self.address).hostname or "").startswith("pro-")
        headers = {"x-cg-pro-api-key" if pays else "x-cg-demo-api-key": self.key} if self.key else {}
        query = {
            "symbols": ",".join(wanted.symbols).lower(),
            "vs_currencies": ",".join(wanted.currencies).lower(),
            "include_tokens": "top",
            "include_24hr_change": "true",
            "include_last_updated_at": "true",
        }
        return [RemoteRequest.get(f"{self.address}/simple/price", query, headers)]

    async def quotes(self, wanted: Wanted, exchange: Exchange) -> list[Quote]:
        """Return the prices that there are. :raises ServiceError: if it does not answer, or refuses"""
        if wanted.at is not None:
            raise ServiceError("CoinGecko is not asked for prices of the past.")
        content = await exchange.json(self.requests(wanted)[0], _reason)
        if not isinstance(content, dict):
            raise ServiceError("CoinGecko responded with something that is no object.", 200)
        quotes = []
        for symbol, currency in wanted.pairs:
            told: Any = content.get(symbol.lower())
            if isinstance(told, dict) and (price := number(told.get(currency.lower()))) is not None:
                change = number(told.get(f"{currency.lower()}_24h_change"))
                updated = stamp(told.get("last_updated_at"))
                quotes.append(
                    Quote(symbol=symbol, currency=currency, price=price, change_24h_percent=change, updated=updated)
                )
        return quotes


def _reason(content: Any) -> Any:
    return content["error"] if "error" in content else content["status"]["error_message"]
