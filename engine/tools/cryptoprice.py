"""``cryptoprice``: what a coin costs, now or at a moment of the past."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, ClassVar, Final

from engine.action_entry import action_definition, text_definition
from engine.contract import Tool, ToolContext, ToolResult
from events.errors import Refused

__all__ = ("CryptoPrice",)

_ADDRESS: Final = "https://min-api.cryptocompare.com"
_SECOND: Final = "https://api.coingecko.com/api/v3"
_SECONDS: Final = 25.0
_SYMBOLS: Final = "^[A-Za-z0-9]{1,15}( ?, ?[A-Za-z0-9]{1,15}){0,9}$"
_NONE: Final = "Failed to retrieve price."


class CryptoPrice(Tool):
    """Asks one service, and a second where the first does not answer.

    The result is ``{status_code, prices, message, provider, timestamp}``, and ``price`` where one was asked for.
    """

    name = "cryptoprice"
    display_name = "Crypto prices"
    description = "Look up prices of crypto currencies."
    effect = "read"
    idempotent = True
    timeout = 30.0
    limits: ClassVar[tuple[str, ...]] = (
        "10 symbols and 10 currencies per call",
        "prices are remembered for 30 s",
        "prices of the past from the first service only",
    )
    errors: ClassVar[tuple[str, ...]] = (
        "Couldn't find price for X in Y.",
        "Failed to retrieve price. ...",
        '"..." in "symbol" is no symbol: 1 to 15 letters and digits, like BTC.',
    )

    async def execute_action(self, action_name: str, context: ToolContext, /, **kwargs: Any) -> Any:
        """Look prices up; that there is not one of them is an error result."""
        # Imported here: the HTTP client is a tenth of a second that the catalogue need not cost.
        from engine.prices.price_memory import price_memory
        from engine.remote.exchange import seconds_left

        try:
            wanted, services = _wanted(action_name, kwargs), self._services(self.config)
        except Refused as error:
            return ToolResult({"status_code": None, "message": str(error)}, status="error")
        memory = self.scope.services.shared(price_memory)
        key = (self.scope.owner, self.scope.tool_id, tuple(service.address for service in services), wanted)
        if (known := memory.result_of(key)) is not None:
            return known
        result = await self._asked(services, wanted, seconds_left(context, _SECONDS))
        if isinstance(result, dict):
            memory.remember(key, result)
        return result

    async def _asked(self, services: list[Any], wanted: Any, seconds: float) -> Any:
        from engine.remote.exchange import Exchange
        from engine.remote.given import masker_of
        from engine.remote.service_error import ServiceError

        masker = masker_of(self.config, self.get_config_requirements())
        errors: list[ServiceError] = []
        for place, service in enumerate(services):
            # The first may not use up the second's time.
            share = seconds if place == len(services) - 1 else seconds * 0.6
            exchange = Exchange(self.scope.services, service.name, masker, share)
            try:
                return _result(service.name, wanted, await service.quotes(wanted, exchange))
            except ServiceError as error:
                errors.append(error)
                seconds -= share
            if wanted.at is not None:
                break
        said = " ".join(str(error) for error in errors)
        return ToolResult({"status_code": errors[0].status, "message": f"{_NONE} {said}"}, status="error")

    def preview_request(self, action_name: str, arguments: dict[str, Any]) -> str:
        """Return the requests that a call would send, keys masked. :raises Refused: if none would be sent

        The second service's is sent only where the first does not answer.
        """
        from engine.remote.request import MASK

        wanted = _wanted(action_name, arguments)
        hidden = {key: MASK for key in ("api_key", "fallback_key") if self.config.get(key)}
        services = self._services({**self.config, **hidden})
        used = services[:1] if wanted.at is not None else services
        return "\n".join(request.preview() for service in used for request in service.requests(wanted))

    def _services(self, config: dict[str, Any]) -> list[Any]:
        from engine.prices.coingecko import CoinGecko
        from engine.prices.cryptocompare import CryptoCompare
        from engine.remote.given import Given
        from engine.remote.request import service_address

        given = Given(config, "setting")
        services: list[Any] = [
            CryptoCompare(service_address(config, "base_url", _ADDRESS), given.text("api_key", "", 500))
        ]
        if config.get("fallback") is not False:
            address = service_address(config, "fallback_url", _SECOND)
            services.append(CoinGecko(address, given.text("fallback_key", "", 500)))
        return services

    def get_actions_metadata(self) -> list[dict[str, Any]]:
        """Return the one action."""
        return [
            action_definition(
                "cryptoprice_get",
                "Return what one or several coins cost, with the change in the last 24 hours.",
                {
                    "symbol": {
                        **text_definition("The coin, like BTC; several with commas between them.", 170),
                        "pattern": _SYMBOLS,
                    },
                    "currency": {
                        **text_definition("The currency, like USD; several with commas between them.", 170),
                        "pattern": _SYMBOLS,
                    },
                    "at": text_definition("A date or moment of the past, like 2026-01-31; now if left out.", 40),
                },
                "symbol",
                "currency",
                effect="read",
                idempotent=True,
            )
        ]

    def get_config_requirements(self) -> dict[str, Any]:
        """Return the services' addresses and keys; nothing is required."""
        secret = {"type": "string", "required": False, "secret": True}
        text = {"type": "string", "required": False}
        return {
            "api_key": {**secret, "description": "CryptoCompare's key, for more requests."},
            "base_url": {**text, "default": _ADDRESS, "description": "CryptoCompare's address."},
            "fallback": {
                "type": "boolean",
                "required": False,
                "default": True,
                "description": "Whether CoinGecko is asked where CryptoCompare does not answer.",
            },
            "fallback_key": {**secret, "description": "CoinGecko's key."},
            "fallback_url": {**text, "default": _SECOND, "description": "CoinGecko's address."},
        }


def _wanted(action_name: str, kwargs: dict[str, Any]) -> Any:
    from engine.prices.quote import Wanted, moment_of, symbols_in
    from engine.remote.given import Given

    if action_name != "cryptoprice_get":
        raise Refused(f"Unknown action: {action_name}. There is: cryptoprice_get.")
    given = Given(kwargs)
    symbols, currencies = (symbols_in(name, given.text(name)) for name in ("symbol", "currency"))
    at = moment_of(given.text("at", longest=40), datetime.now(UTC)) if given.has("at") else None
    return Wanted(symbols, currencies, at)


def _result(provider: str, wanted: Any, quotes: list[Any]) -> Any:
    found = {(quote.symbol, quote.currency) for quote in quotes}
    absent = [pair for pair in wanted.pairs if pair not in found]
    missing = [f"Couldn't find price for {symbol} in {currency}." for symbol, currency in absent]
    if not quotes:
        return ToolResult({"status_code": 200, "message": " ".join(missing)}, status="error")
    result = {
        "status_code": 200,
        "prices": [quote.as_json() for quote in quotes],
        "message": " ".join(["Price retrieved.", *missing]),
        "provider": provider,
        "timestamp": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return {"price": quotes[0].price, **result} if len(wanted.pairs) == 1 else result
