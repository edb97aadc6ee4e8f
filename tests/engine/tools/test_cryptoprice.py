"""``cryptoprice``: encoded symbols, several at once, a second service, a short memory."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs

import pytest

from engine.contract import ToolResult
from engine.prices.price_memory import REMEMBERED, PriceMemory
from engine.tools.cryptoprice import CryptoPrice
from tests.engine.api.raw_server import RawServer, answer, raw_server
from tests.engine.tools.outside import calling, error_of, recorded

__all__ = ()

pytestmark = pytest.mark.anyio
KEY, OTHER = "cc-7Hf2-secret-key", "cg-9Kp3-secret-key"


def at(first: RawServer, second: RawServer) -> dict[str, Any]:
    """Return the settings of a row that asks the test's servers."""
    return {"base_url": first.origin, "fallback_url": f"{second.origin}/api/v3"}


async def test_prices_with_their_change_and_time() -> None:
    with raw_server() as first, raw_server() as second:
        first.answers = [recorded("cryptocompare_full.json")]
        async with calling(CryptoPrice, api_key=KEY, **at(first, second)) as call:
            one = await call("cryptoprice_get", symbol="btc", currency="USD")
            assert one["price"] == 67187.33
            assert one["prices"] == [
                {
                    "symbol": "BTC",
                    "currency": "USD",
                    "price": 67187.33,
                    "change_24h_percent": 3.637,
                    "updated": "2024-03-25T08:45:00+00:00",
                }
            ]
            assert (one["status_code"], one["provider"], one["message"]) == (200, "CryptoCompare", "Price retrieved.")
            assert datetime.now(UTC) - datetime.fromisoformat(one["timestamp"]) < timedelta(minutes=1)
            assert first.last.path == "/data/pricemultifull"
            assert first.last.header("authorization") == f"Apikey {KEY}"

            several = await call("cryptoprice_get", symbol="BTC, ETH,BTC", currency="usd,eur")
            assert parse_qs(first.last.query) == {"fsyms": ["BTC,ETH"], "tsyms": ["USD,EUR"]}
            assert [(each["symbol"], each["currency"]) for each in several["prices"]] == [
                ("BTC", "USD"),
                ("BTC", "EUR"),
                ("ETH", "USD"),
            ]
            assert several["message"] == "Price retrieved. Couldn't find price for ETH in EUR."
            assert "price" not in several
        assert second.received == []


async def test_what_is_no_symbol_never_becomes_part_of_a_request() -> None:
    with raw_server() as first, raw_server() as second:
        async with calling(CryptoPrice, **at(first, second)) as call:
            for symbol, currency, said in (
                ("BTC&tsyms=EUR", "USD", "is no symbol"),
                ("BTC/../x", "USD", "is no symbol"),
                ("BTC,", "USD", "is no symbol"),
                ("BTC", "US D", "is no symbol"),
                ("ẞTC", "USD", "is no symbol"),
                ("B" * 16, "USD", "is no symbol"),
                (",".join(f"C{n}" for n in range(11)), "USD", "at most 10"),
                ("", "USD", "must be text"),
                (None, "USD", "must be text"),
            ):
                error = error_of(await call("cryptoprice_get", symbol=symbol, currency=currency))
                assert said in error["message"]
                assert error["status_code"] is None
            for moment in ("yesterday", "2999-01-01", "1999-01-01", "2026-13-01", "9999-12-31T23:59:59-23:00"):
                error = error_of(await call("cryptoprice_get", symbol="BTC", currency="USD", at=moment))
                assert '"at" must be' in error["message"]
            assert "Unknown action" in error_of(await call("burn", symbol="BTC", currency="USD"))["message"]
        assert first.received == second.received == []


async def test_a_pair_that_is_not_there_is_said_so() -> None:
    with raw_server() as first, raw_server() as second:
        async with calling(CryptoPrice, **at(first, second)) as call:
            for place, body in enumerate(
                (recorded("cryptocompare_unknown.json"), answer(b"{}"), answer(b'{"RAW":[]}'))
            ):
                first.answers = [body]
                error = error_of(await call("cryptoprice_get", symbol=f"MYCOIN{place}", currency="USD"))
                assert error == {"status_code": 200, "message": f"Couldn't find price for MYCOIN{place} in USD."}
        assert second.received == []


async def test_the_second_service_answers_where_the_first_does_not() -> None:
    with raw_server() as first, raw_server() as second:
        second.answers = [recorded("coingecko_price.json")]
        config = {**at(first, second), "api_key": KEY, "fallback_key": OTHER}
        for body in (
            answer(b"", 500),
            recorded("cryptocompare_limited.json"),
            answer(b"<html>"),
            answer(b"[]"),
            answer(b"", 302),
        ):
            first.answers = [body]
            async with calling(CryptoPrice, **config) as call:
                found = await call("cryptoprice_get", symbol="BTC", currency="USD")
            assert (found["price"], found["provider"]) == (67190.1, "CoinGecko")
            assert found["prices"][0]["change_24h_percent"] == 3.63727894677354
        asked = parse_qs(second.last.query)
        assert second.last.path == "/api/v3/simple/price"
        assert (asked["symbols"], asked["vs_currencies"]) == (["btc"], ["usd"])
        assert second.last.header("x-cg-demo-api-key") == OTHER
        assert second.last.header("authorization") is None
        assert first.last.header("x-cg-demo-api-key") is None

        second.answers = [answer(b'{"status":{"error_code":429,"error_message":"slow down"}}', 429, Retry_After="900")]
        first.answers = [recorded("cryptocompare_limited.json")]
        async with calling(CryptoPrice, **config) as call:
            result = await call("cryptoprice_get", symbol="BTC", currency="USD")
        error = error_of(result)
        assert error["status_code"] == 429
        assert error["message"] == (
            "Failed to retrieve price. CryptoCompare refuses: You are over your rate limit please upgrade your "
            "account! CoinGecko responded with HTTP status 429: slow down. Retry-After: 900."
        )
        sent = len(second.received)
        async with calling(CryptoPrice, fallback=False, **config) as call:
            error_of(await call("cryptoprice_get", symbol="BTC", currency="USD"))
        assert len(second.received) == sent


async def test_no_key_is_in_what_comes_back() -> None:
    with raw_server() as first, raw_server() as second:
        first.answers = [answer(f"bad key {KEY}".encode(), 401)]
        second.answers = [answer(f'{{"error":"bad key {OTHER}"}}'.encode(), 401)]
        async with calling(CryptoPrice, api_key=KEY, fallback_key=OTHER, **at(first, second)) as call:
            result = await call("cryptoprice_get", symbol="BTC", currency="USD")
            assert "bad key ***" in error_of(result)["message"]
            shown = call.preview("cryptoprice_get", symbol="BTC", currency="USD")
            for text in (repr(result), shown):
                assert KEY not in text
                assert OTHER not in text
            assert "GET /data/pricemultifull?fsyms=BTC&tsyms=USD HTTP/1.1" in shown
            assert "Authorization: Apikey ***" in shown
            assert "x-cg-demo-api-key: ***" in shown


async def test_a_price_is_remembered_for_its_own_row_only() -> None:
    with raw_server() as first, raw_server() as second:
        first.answers = [recorded("cryptocompare_full.json")]
        async with calling(CryptoPrice, **at(first, second)) as call:
            found = await call("cryptoprice_get", symbol="BTC", currency="USD")
            assert await call("cryptoprice_get", symbol="btc", currency="usd") == found
            assert len(first.received) == 1
            await call.of_user("v")("cryptoprice_get", symbol="BTC", currency="USD")
            assert len(first.received) == 2
            first.answers = [answer(b"{}")]
            for _ in range(2):
                assert isinstance(await call("cryptoprice_get", symbol="XYZ", currency="USD"), ToolResult)
            assert len(first.received) == 4


async def test_prices_of_the_past_come_from_the_first_service() -> None:
    with raw_server() as first, raw_server() as second:
        first.answers = [answer(b'{"BTC":{"USD":29000.5,"EUR":0}}'), answer(b'{"ETH":{"USD":737.8}}')]
        async with calling(CryptoPrice, **at(first, second)) as call:
            found = await call("cryptoprice_get", symbol="BTC,ETH", currency="USD,EUR", at="2021-01-01")
            assert [each["price"] for each in found["prices"]] == [29000.5, 737.8]
            assert found["prices"][0]["updated"] == "2021-01-01T00:00:00+00:00"
            assert "Couldn't find price for BTC in EUR." in found["message"]
            assert [parse_qs(each.query) for each in first.received] == [
                {"fsym": [symbol], "tsyms": ["USD,EUR"], "ts": ["1609459200"]} for symbol in ("BTC", "ETH")
            ]
            first.answers = [answer(b"", 500)]
            error = error_of(await call("cryptoprice_get", symbol="BTC", currency="USD", at="2021-01-01T12:00Z"))
            assert error["message"].startswith("Failed to retrieve price. CryptoCompare responded with HTTP status 500")
        assert second.received == []


def test_a_price_is_forgotten_after_half_a_minute_and_is_nobodys_to_change() -> None:
    moments = [1000.0]
    memory = PriceMemory(lambda: moments[-1])
    memory.remember("k", {"prices": [1]})
    known = memory.result_of("k")
    assert known == {"prices": [1]}
    known["prices"].append(2)
    moments.append(1000.0 + REMEMBERED - 1)
    assert memory.result_of("k") == {"prices": [1]}
    moments.append(1000.0 + REMEMBERED)
    assert memory.result_of("k") is None
