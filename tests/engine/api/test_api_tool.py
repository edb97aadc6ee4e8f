"""Calls of an api_tool through the engine: what it is given, what is recorded of it, and what nobody sees."""

from __future__ import annotations

import logging
from base64 import b64encode
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from sqlalchemy import select

from engine import CallContext, Engine, Settings, ToolRow
from engine.api.dry_run import dry_run
from engine.contract import Scope
from engine.credentials import MasterKeys, Vault
from engine.schema import metadata as engine_tables
from engine.tools.api_tool import ApiTool
from engine.tools.read_result import ReadResult
from events import Executed, Paused, to_wire
from events.errors import Refused
from events.schema import metadata as event_tables
from projections.schema import metadata as projection_tables
from tests.engine.api.calls import LOCAL
from tests.engine.api.raw_server import RawServer, answer, raw_server
from tests.engine.fences import json_within
from tests.engine.gating import resumed
from tests.engine.staging import call, events_of, outcome_of, row_of, staged_engine
from tests.engine.station import Station

__all__ = ()

pytestmark = pytest.mark.anyio

KEYS = MasterKeys("k1", {"k1": b"1" * 32})
SETTINGS = Settings(net=LOCAL, master_keys=KEYS)
TEXT = {"type": "string"}
SECRET = "zq-7Hf2/se cret+ü"
PACKED = b64encode(f"me:{SECRET}".encode()).decode()
FORMS = (SECRET, quote(SECRET, safe=""), b64encode(SECRET.encode()).decode(), PACKED)


class Watched(ApiTool):
    """Keeps what each of its instances was given."""

    made: list[dict[str, Any]]
    given: list[dict[str, Any]]

    def __init__(self, config: dict[str, Any], scope: Scope) -> None:
        super().__init__(config, scope)
        type(self).made.append(config)

    async def execute_action(self, action_name: str, context: Any, /, **kwargs: Any) -> Any:
        type(self).given.append(kwargs)
        return await super().execute_action(action_name, context, **kwargs)


def watched() -> type[Watched]:
    """Return a class that has kept nothing yet."""
    return type("Own", (Watched,), {"name": "watched", "made": [], "given": []})


def row_with(
    security: list[dict[str, Any]], *, tool: str = "api_tool", secrets: dict[str, Any] | None = None, **actions: Any
) -> ToolRow:
    """Return a row of api_tool, its secrets sealed."""
    config = {"actions": actions, "security": security}
    sealed = None if secrets is None else Vault(KEYS).seal(secrets, owner="u", row_id="t1")
    return ToolRow(id="t1", name=tool, user_id="u", config=config, credentials=sealed)


def spread(server: RawServer) -> dict[str, Any]:
    """Return an action with arguments in every group."""
    return {
        "url": f"{server.origin}/docks/{{dock}}",
        "method": "POST",
        "description": "Opens a dock.",
        "query_params": {"properties": {"dock": TEXT, "page": {"type": "integer", "default": 1}}, "required": ["dock"]},
        "headers": {"properties": {"X-Mode": {"filled_by_llm": False, "value": "safe", **TEXT}}},
        "body": {"properties": {"dock": TEXT, "bays": {"type": "array"}}},
    }


async def test_behaviour_080_each_part_of_a_request_goes_where_it_belongs(journal_url: str) -> None:
    with raw_server() as server:
        typed = {**spread(server), "body_content_type": "application/vnd.api+json"}
        bare = {"url": server.origin, "method": "GET"}
        tool = watched()
        rows = [row_with([], tool="watched", plain=spread(server), typed=typed, bare=bare)]
        async with staged_engine(journal_url, tool, rows=rows, settings=SETTINGS) as engine:
            arguments = {"dock": "a/b", "bays": [1]}
            done = await outcome_of(engine, call(arguments, name="plain"))
            assert isinstance(done, Executed)
            assert done.result == {"status_code": 200, "data": {}, "message": "API call successful."}
            parts = {
                "query_params": {"dock": "a/b"},
                "headers": {"X-Mode": "safe"},
                "body": {"dock": "a/b", "bays": [1]},
            }
            assert done.resolved == parts
            assert (await row_of(engine)).arguments == arguments
            assert server.last.target == "/docks/a%2Fb"
            assert server.last.header("x-mode") == "safe"
            assert server.last.body == b'{"dock":"a/b","bays":[1]}'
            await outcome_of(engine, call(arguments, name="typed", call_id="c2"))
            assert server.last.header("content-type") == "application/vnd.api+json"
            unasked = await outcome_of(engine, call({}, name="bare", call_id="c3"))
            assert isinstance(unasked, Executed)
            assert unasked.resolved == {"query_params": {}, "headers": {}, "body": {}}
            refused = await outcome_of(engine, call({"x": 1}, name="bare", call_id="c4"))
            assert not isinstance(refused, Executed)
        assert tool.given == [parts["body"], parts["body"], {}]
        first, second, third = tool.made
        assert {key: first[key] for key in ("url", "method", "query_params", "headers")} == {
            "url": typed["url"],
            "method": "POST",
            "query_params": parts["query_params"],
            "headers": parts["headers"],
        }
        assert "body_content_type" not in first
        assert second["body_content_type"] == "application/vnd.api+json"
        assert (third["query_params"], third["headers"]) == ({}, {})


async def test_behaviour_081_133_136_an_api_tool_is_made_for_each_call(sqlite_url: str) -> None:
    with raw_server() as server:
        tool = watched()
        other = {"url": "http://other.example/", "method": "DELETE"}
        row = row_with([], tool="watched", secrets={"api_key": "k"}, plain=spread(server), other=other)
        async with staged_engine(sqlite_url, tool, rows=[row], settings=SETTINGS) as engine:
            for number in range(2):
                await outcome_of(engine, call({"dock": str(number)}, name="plain", call_id=f"c{number}"))
                assert (server.last.path, server.last.body) == (f"/docks/{number}", b'{"dock":"%d"}' % number)
        assert [made["query_params"] for made in tool.made] == [{"dock": "0"}, {"dock": "1"}]
        # Its own request's settings, and nothing of the row's other actions.
        assert "actions" not in tool.made[0]
        assert "other.example" not in repr(tool.made)
        assert tool.made[0]["auth_credentials"] == {"api_key": "k"}


async def kept(engine: Engine) -> str:
    """Return everything that the journal's database holds, but for what is sealed."""
    tables = [table for each in (event_tables, projection_tables, engine_tables) for table in each.sorted_tables]
    return repr([await engine.log.store.read(select(*table.c)) for table in tables])


def guarded_row(server: RawServer, injection: dict[str, Any]) -> ToolRow:
    """Return a row with a credential: one action at the server, one where nobody is, one that asks."""
    secrets = {"username": "me", "password": SECRET} if injection["in"] == "basic" else {"key": SECRET}
    url = f"{server.origin}/{{token}}/x" if injection["in"] == "path" else f"{server.origin}/x"
    properties = {"query_params": {"properties": {"dock": TEXT}}, "body": {"properties": {"note": TEXT}}}
    action = {"url": url, "method": "POST", **properties}
    gone = {**action, "url": url.replace(str(server.port), "1")}
    return row_with([injection], secrets=secrets, act=action, gone=gone, asked={**action, "require_approval": True})


@pytest.mark.parametrize(
    "injection",
    [
        {"in": "header", "name": "X-API-Key", "secret": "key"},
        {"in": "query", "name": "api key", "secret": "key"},
        {"in": "path", "name": "token", "secret": "key"},
        {"in": "cookie", "name": "sid", "secret": "key"},
        {"in": "bearer", "secret": "key"},
        {"in": "header", "name": "Authorization", "secret": "key", "prefix": "Token "},
        {"in": "basic"},
    ],
    ids=lambda injection: str(injection.get("prefix", injection["in"])),
)
async def test_case_otel_03_a_credential_reaches_the_server_and_nobody_else(
    sqlite_url: str, station: Station, caplog: pytest.LogCaptureFixture, injection: dict[str, Any]
) -> None:
    caplog.set_level(logging.DEBUG)
    echo = msgspec.json.encode({"said": [*FORMS, f"key={SECRET}"], SECRET: 1})
    arguments = {"note": f"my key is {SECRET}", "dock": "d"}
    with raw_server() as server:
        row = guarded_row(server, injection)
        server.answers = [
            answer(echo, 401),
            answer(echo, content_type="text/plain", Location=f"/?k={quote(SECRET, safe='')}"),
            answer(b"\x89PNG" + SECRET.encode(), content_type="image/png"),
            answer(echo),
        ]
        async with staged_engine(sqlite_url, ApiTool, rows=[row], settings=SETTINGS) as engine:
            events: list[Any] = []
            for number, name in enumerate(("act", "act", "act", "gone", "asked")):
                events += await events_of(engine, call(arguments, name=name, call_id=f"c{number}"))
            assert isinstance(events[-1], Paused)
            await engine.decide("m:c4", approve=True, by="ada", user_id="u")
            events.append(await resumed(engine, "m:c4"))
            told = await engine.tool_results("m", user_id="u", family="openai")
            shown = [*events, *map(to_wire, events), told, engine, engine.statistics(), await kept(engine)]
        places = repr([*shown, station.all_of_it(), caplog.text, [record.args for record in caplog.records]])
        assert [form for form in (*FORMS, *map(ascii, FORMS)) if form.strip("'") in places] == []
        assert all(name in places for name in ("execute_tool", "http.request.method", "http.response.status_code"))
        assert arguments == {"note": f"my key is {SECRET}", "dock": "d"}
        statuses = [event.status for event in events if isinstance(event, Executed)]
        assert statuses == ["error", "completed", "completed", "error", "completed"]
        assert "withheld" in str(events[5].result)
        # It did reach the server, where the row says.
        assert len(server.received) == 4
        for received in server.received:
            wire = repr([received.target, received.headers])
            assert quote(SECRET, safe="*") in wire or PACKED in wire or "Hf2/se cret+" in wire
            assert received.body == msgspec.json.encode({"note": arguments["note"]})


async def test_what_an_owner_requires_asks_and_an_idempotency_key_is_the_calls(sqlite_url: str) -> None:
    with raw_server() as server:
        action = {"url": server.origin, "method": "POST", "idempotency_header": "Idempotency-Key"}
        rows = [ToolRow(id="t1", name="api_tool", user_id="u", config={"actions": {"act": action}})]
        server.answers = [answer(b"{}", 503, Retry_After="0"), answer(b"{}")]
        async with staged_engine(sqlite_url, ApiTool, rows=rows, settings=SETTINGS) as engine:
            await outcome_of(engine, call({}, name="act"))
            await outcome_of(engine, call({}, name="act", call_id="c2"))
            other = CallContext(user_id="v", message_id="m", tool_ids=("t1",))
            await outcome_of(engine, call({}, name="act"), other)
        keys = [received.header("idempotency-key") for received in server.received]
        # The same for each attempt of a call; another for another call, also where only the user is another.
        assert keys[0] == keys[1]
        assert len(set(keys)) == 3


async def test_a_long_response_is_cut_with_a_way_on(sqlite_url: str) -> None:
    whole = {"rows": [{"id": number, "text": "x" * 50} for number in range(5000)]}
    with raw_server() as server:
        server.answers = [answer(msgspec.json.encode(whole))]
        rows = [row_with([], act={"url": server.origin}), ToolRow(id="r", name="read_result", user_id="u")]
        async with staged_engine(sqlite_url, ApiTool, ReadResult, rows=rows, settings=SETTINGS) as engine:
            await outcome_of(engine, call({}, name="act"))
            (told,) = await engine.tool_results("m", user_id="u", family="openai", limit=2000)
            notice = json_within(told["content"])
            assert notice["head"].startswith('{"status_code":200,"data":{"rows":[{"id":0')
            assert notice["tail"].endswith('"message":"API call successful."}')
            text, offset = "", 0
            while offset is not None:
                piece = {"key": notice["read"], "offset": offset, "limit": 100_000}
                read = await outcome_of(engine, call(piece, name="read_result", call_id=f"r{offset}"))
                assert isinstance(read, Executed)
                text, offset = text + read.result["text"], read.result["next"]
        assert len(text) == notice["total"]
        assert msgspec.json.decode(text)["data"] == whole


DRY = {
    "url": "https://h.example:8443/docks/{dock}/{token}?fixed=1",
    "method": "POST",
    "query_params": {"properties": {"dock": TEXT, "q": TEXT}, "required": ["dock"]},
    "headers": {"properties": {"X-Ref": TEXT}},
    "body": {"properties": {"note": TEXT}},
    "idempotency_header": "Idempotency-Key",
    "security": [
        {"in": "path", "name": "token", "secret": "t"},
        {"in": "query", "name": "k", "secret": "key"},
        {"in": "header", "name": "X-API-Key", "secret": "key", "prefix": "Key "},
        {"in": "cookie", "name": "sid", "secret": "key"},
        {"in": "basic"},
    ],
}


def test_a_dry_run_shows_the_exact_request_and_no_secret() -> None:
    row = row_with(
        [],
        act=DRY,
        file={
            "url": "https://h.example",
            "method": "PUT",
            "body_content_type": "image/png",
            "body": {"properties": {"f": TEXT}},
        },
    )
    preview = dry_run(row, "act", {"dock": "a/b", "q": "x y", "X-Ref": "7", "note": "é"})
    assert str(preview) == (
        "POST /docks/a%2Fb/***?fixed=1&q=x%20y&k=*** HTTP/1.1\n"
        "Host: h.example:8443\n"
        "Accept: application/json, */*;q=0.8\n"
        "X-Ref: 7\n"
        "Content-Type: application/json\n"
        "Idempotency-Key: (the call's)\n"
        "X-API-Key: Key ***\n"
        "Authorization: Basic ***\n"
        "Cookie: sid=***\n"
        "Content-Length: 13\n"
        "\n"
        '{"note":"é"}\n'
    )
    assert dry_run(row, "file", {"f": "iVBO/w=="}).body == "\\x89PN\\xff"
    for name, arguments, said in (("gone", {}, "act, file"), ("act", {}, "dock"), ("act", {"dock": ".."}, "path")):
        with pytest.raises(Refused, match=said):
            dry_run(row, name, arguments)
