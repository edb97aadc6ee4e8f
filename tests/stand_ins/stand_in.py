"""What stands in for the services that a tool calls: how a row is configured for it, what to call, what it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from tests.engine.tools.documents import ARTICLE
from tests.engine.tools.outside import recorded_bytes
from tests.stand_ins.trial import KEEPING, Trial

__all__ = ("NAMES", "StandIn", "stand_in")

_SECRET: Final = "123456789:AAzq7-Hf2_secretsecretsecret"
_NEEDLE: Final = "Nine metres."


class StandIn(msgspec.Struct, frozen=True):
    """One tool's.

    :ivar config: secrets included
    :ivar answers: by the end of a request's path: the name of what was recorded, or a page; the first that fits answers
    """

    config: dict[str, Any]
    trials: tuple[Trial, ...]
    answers: tuple[tuple[str, bytes], ...] = ()


def stand_in(name: str, address: str) -> StandIn:
    """Return a tool's stand-in.

    :param address: of its server: an origin, or a database's URL
    :raises KeyError: if the tool has none
    """
    return StandIn({}, KEEPING[name]) if name in KEEPING else _MADE[name](address)


def _brave(origin: str) -> StandIn:
    return StandIn(
        {"base_url": f"{origin}/res/v1", "token": _SECRET, "requests_per_second": 100},
        _searches("brave_web_search", "brave_image_search", "brave_news_search"),
        _recorded(("/web/search", "brave_web.json"), ("/images/search", "brave_images.json"), ("", "brave_news.json")),
    )


def _duckduckgo(origin: str) -> StandIn:
    kinds = (("/i.js", "images.json"), ("/news.js", "news.json"), ("/html/", "web.html"), ("", "token.html"))
    return StandIn(
        {"base_url": origin, "html_base_url": origin},
        _searches("ddg_web_search", "ddg_image_search", "ddg_news_search"),
        _recorded(*((path, f"duckduckgo_{name}") for path, name in kinds)),
    )


def _searches(*actions: str) -> tuple[Trial, ...]:
    return tuple(Trial(action, {"query": "harbour"}) for action in actions)


def _recorded(*answers: tuple[str, str]) -> tuple[tuple[str, bytes], ...]:
    return tuple((path, recorded_bytes(name)) for path, name in answers)


def _cryptoprice(origin: str) -> StandIn:
    return StandIn(
        {"base_url": origin, "api_key": _SECRET, "fallback": False},
        (Trial("cryptoprice_get", {"symbol": "BTC", "currency": "USD"}),),
        _recorded(("", "cryptocompare_full.json")),
    )


def _ntfy(origin: str) -> StandIn:
    return StandIn(
        {"server": origin, "topic": "harbour", "token": _SECRET},
        (Trial("ntfy_send_message", {"message": _NEEDLE, "title": "Depth"}),),
        _recorded(("", "ntfy_sent.json")),
    )


def _telegram(origin: str) -> StandIn:
    return StandIn(
        {"server": origin, "token": _SECRET, "chat_id": "5"},
        (
            Trial("telegram_send_message", {"text": _NEEDLE}),
            Trial("telegram_send_image", {"image_url": "https://photos.example/harbour.jpg"}),
        ),
        _recorded(("", "telegram_sent.json")),
    )


def _read_webpage(origin: str) -> StandIn:
    url = f"{origin}/harbour"
    trials = ({"url": url}, {"url": url, "find": "1984"}, {"url": url, "links": True})
    return StandIn({}, tuple(Trial("read_webpage", each) for each in trials), (("", ARTICLE.encode()),))


def _postgres(url: str) -> StandIn:
    statements = ("CREATE TABLE depths (place text PRIMARY KEY, metres int)", "INSERT INTO depths VALUES ('pier', 9)")
    query = {"sql_query": "SELECT * FROM depths"}
    return StandIn(
        {"token": url},
        (
            *(Trial("postgres_write_sql", {"sql_query": each}) for each in statements),
            Trial("postgres_execute_sql", query),
            Trial("postgres_explain", query),
            Trial("postgres_get_schema"),
        ),
    )


_MADE: Mapping[str, Callable[[str], StandIn]] = MappingProxyType(
    {
        "brave": _brave,
        "cryptoprice": _cryptoprice,
        "duckduckgo": _duckduckgo,
        "ntfy": _ntfy,
        "postgres": _postgres,
        "read_webpage": _read_webpage,
        "telegram": _telegram,
    }
)
NAMES: tuple[str, ...] = (*_MADE, *KEEPING)
"""Every tool that has one."""
