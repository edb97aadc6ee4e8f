"""CryptoCompare's interface: spot prices with their change, and prices of the past."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from engine.prices.quote import Quote, Wanted, number, stamp
from engine.remote.exchange import Exchange
from engine.remote.request import RemoteRequest
from engine.remote.service_error import ServiceError

__all__ = ("CryptoCompare",)

_UNKNOWN: Final = ("There is no data for", "market does not exist")
_LIMITED: Final = 99


class CryptoCompare(msgspec.Struct, frozen=True):
    """Access with a row's key, or without one; its ``repr`` does not show it."""

    address: str
    key: str

    name = "CryptoCompare"

    def __repr__(self) -> str:
        return f"<CryptoCompare {self.address}>"

    def requests(self, wanted: Wanted) -> list[RemoteRequest]:
        """Return what is sent: one request for all spot prices, one for each symbol of the past."""
        headers = {"Authorization": f"Apikey {self.key}"} if self.key else {}
        currencies = ",".join(wanted.currencies)
        if wanted.at is None:
            query = {"fsyms": ",".join(wanted.symbols), "tsyms": currencies}
            return [RemoteRequest.get(f"{self.address}/data/pricemultifull", query, headers)]
        moment = str(int(wanted.at.timestamp()))
        return [
            RemoteRequest.get(
                f"{self.address}/data/pricehistorical", {"fsym": symbol, "tsyms": currencies, "ts": moment}, headers
            )
            for symbol in wanted.symbols
        ]

    async def quotes(self, wanted: Wanted, exchange: Exchange) -> list[Quote]:
        """Return the prices that there are. :raises ServiceError: if it does not answer, or refuses"""
        found: list[Quote] = []
        for request in self.requests(wanted):
            content = _checked(await exchange.json(request, lambda content: content["Message"]))
            found += _spot(content, wanted) if wanted.at is None else _past(content, wanted)
        return found


def _checked(content: Any) -> dict[str, Any]:
    """Return a reply that holds prices, if only none. Its errors come with HTTP status 200."""
    if not isinstance(content, dict):
        raise ServiceError("CryptoCompare responded with something that is no object.", 200)
    if content.get("Response") != "Error":
        return content
    said = content.get("Message")
    reason = said if isinstance(said, str) else "no reason given"
    if any(mark in reason for mark in _UNKNOWN):
        return {}
    limited = content.get("Type") == _LIMITED
    raise ServiceError(f"CryptoCompare refuses: {reason[:300]}", 429 if limited else 200)


def _spot(content: dict[str, Any], wanted: Wanted) -> list[Quote]:
    quotes = []
    for symbol, currency in wanted.pairs:
        told = _within(content, "RAW", symbol, currency)
        if isinstance(told, dict) and (price := number(told.get("PRICE"))) is not None:
            change, updated = number(told.get("CHANGEPCT24HOUR")), stamp(told.get("LASTUPDATE"))
            quotes.append(
                Quote(symbol=symbol, currency=currency, price=price, change_24h_percent=change, updated=updated)
            )
    return quotes


def _past(content: dict[str, Any], wanted: Wanted) -> list[Quote]:
    moment = None if wanted.at is None else wanted.at.isoformat()
    quotes = []
    for symbol, currency in wanted.pairs:
        price = number(_within(content, symbol, currency))
        # A price of 0 is how it says that it knows none of that time.
        if price:
            quotes.append(Quote(symbol=symbol, currency=currency, price=price, updated=moment))
    return quotes


def _within(content: Any, *keys: str) -> Any:
    for key in keys:
        content = content.get(key) if isinstance(content, dict) else None
    return content
