"""The tools of outside services through the engine: gate, journal, secrets, cancelled calls; what they all promise."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from engine import ToolCall
from engine.contract import Scope, Tool
from engine.tools.brave import Brave
from engine.tools.cryptoprice import CryptoPrice
from engine.tools.duckduckgo import DuckDuckGo
from engine.tools.ntfy import Ntfy
from engine.tools.telegram import Telegram
from events import Executed, Failed
from tests.engine.api.raw_server import raw_server
from tests.engine.staging import outcome_of, proved, row_of, stream_of
from tests.engine.station import Station
from tests.engine.tools.outside import asked_more_than, recorded, through_engine

__all__ = ()

pytestmark = pytest.mark.anyio
SECRET = "123456789:AAzq7-Hf2_secretsecretsecret"

Config = Callable[[str], dict[str, Any]]
CASES: tuple[tuple[type[Tool], Config, str, dict[str, Any], tuple[str, ...]], ...] = (
    (
        Brave,
        lambda origin: {"base_url": origin, "token": SECRET},
        "brave_web_search",
        {"query": "anyio"},
        ("brave_web.json",),
    ),
    (
        DuckDuckGo,
        lambda origin: {"base_url": origin, "html_base_url": origin},
        "ddg_news_search",
        {"query": "port"},
        ("duckduckgo_token.html", "duckduckgo_news.json"),
    ),
    (
        CryptoPrice,
        lambda origin: {"base_url": origin, "api_key": SECRET, "fallback": False},
        "cryptoprice_get",
        {"symbol": "BTC", "currency": "USD"},
        ("cryptocompare_full.json",),
    ),
    (
        Ntfy,
        lambda origin: {"server": origin, "topic": "harbour", "token": SECRET},
        "ntfy_send_message",
        {"message": "x"},
        ("ntfy_sent.json",),
    ),
    (
        Telegram,
        lambda origin: {"server": origin, "token": SECRET, "chat_id": "5"},
        "telegram_send_message",
        {"text": "x"},
        ("telegram_sent.json",),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].name)
async def test_a_call_through_the_engine(
    sqlite_url: str, case: Any, station: Station, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    tool, config, action, arguments, responses = case
    with raw_server() as server:
        server.answers = [recorded(name) for name in responses]
        async with through_engine(sqlite_url, tool, **config(server.origin)) as engine:
            outcome = await outcome_of(engine, ToolCall(id="c1", name=action, arguments=arguments))
            assert isinstance(outcome, Executed), outcome
            assert (await row_of(engine)).result_status == "completed"
            assert len(server.received) == len(responses)

            server.answers = [b"HTTP/1.1 401 No\r\nContent-Length: 46\r\n\r\n" + f"no {SECRET} here".encode().ljust(46)]
            refused = await outcome_of(engine, ToolCall(id="c2", name=action, arguments=_other(arguments)))
            assert isinstance(refused, Executed), refused
            assert (await row_of(engine, "m:c2")).result_status == "error"

            for place, wrong in enumerate(({**arguments, "server_url": "https://evil.example/"}, {})):
                failed = await outcome_of(engine, ToolCall(id=f"w{place}", name=action, arguments=wrong))
                assert isinstance(failed, Failed), failed
                assert failed.kind == "invalid_arguments"
            assert len(server.received) == len(responses) + 1
            for key in ("m:c1", "m:c2"):
                assert SECRET not in repr(await stream_of(engine, key))
            await proved(engine)
    traces = station.all_of_it()
    assert tool.name in traces
    for text in (traces, caplog.text, repr([record.args for record in caplog.records])):
        assert SECRET not in text


def _other(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return arguments of a call that nothing is remembered of."""
    return {**arguments, **({"symbol": "XMR"} if "symbol" in arguments else {next(iter(arguments)): "y"})}


async def test_a_cancelled_call_is_journalled_and_its_request_dropped(sqlite_url: str) -> None:
    with raw_server() as server:
        server.answers, server.holds = [b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"], True
        for place, (tool, config, action, arguments, _) in enumerate(CASES):
            async with through_engine(sqlite_url, tool, **config(server.origin)) as engine:
                before = len(server.received)
                with anyio.fail_after(10):
                    async with anyio.create_task_group() as tasks:
                        call = ToolCall(id=f"c{place}", name=action, arguments=arguments)
                        tasks.start_soon(outcome_of, engine, call)
                        await asked_more_than(server, before)
                        tasks.cancel_scope.cancel()
                assert (await row_of(engine, f"m:c{place}")).status == "failed"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].name)
async def test_schemas_and_settings_are_strict_and_described(case: Any) -> None:
    kind, config, action, arguments, _ = case
    tool = kind(config("https://h.example"), Scope(user_id="u", owner="u", tool_id="t"))
    for entry in tool.get_actions_metadata():
        schema = entry["parameters"]
        assert schema["additionalProperties"] is False
        assert set(schema["required"]) <= set(schema["properties"])
        assert entry["effect"] == ("write" if kind in (Ntfy, Telegram) else "read")
        for name, each in schema["properties"].items():
            assert each["description"], name
            assert {"maxLength", "enum", "maxItems", "maximum"} & each.keys(), name
    for key, setting in tool.get_config_requirements().items():
        assert setting["description"], key
        assert setting.get("secret", False) == (key in ("token", "password", "api_key", "fallback_key"))
    assert kind.limits
    assert kind.errors
    shown = tool.preview_request(action, arguments)
    assert "HTTP/1.1\nHost: " in shown
    assert SECRET not in shown
    json.dumps([tool.get_actions_metadata(), tool.get_config_requirements()])


def test_the_catalogue_loads_no_http_client_and_none_of_the_libraries() -> None:
    names = [case[0].__module__ for case in CASES]
    script = (
        "import sys, importlib\n"
        "from engine.contract import Scope\n"
        "from engine.discovery import tools_of\n"
        f"for name in {names!r}:\n"
        "    for kind in tools_of(importlib.import_module(name)):\n"
        "        tool = kind({}, Scope(user_id=None, owner=None, tool_id='t'))\n"
        "        tool.get_actions_metadata(), tool.get_config_requirements()\n"
        "heavy = {'httpx', 'ddgs', 'primp', 'lxml', 'circuitbreaker', 'cachetools'}\n"
        "heavy.add('telegramify_markdown')\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n", done.stderr
