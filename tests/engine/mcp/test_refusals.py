"""Configurations that name no server, servers that do not answer, and credentials that are shown to nobody."""

from __future__ import annotations

import base64
import logging
from typing import Any

import pytest

from engine import Engine, Settings, ToolRow
from engine.mcp.errors import InvalidServer
from engine.mcp.server import Server
from engine.tools.mcp_tool import MCPTool
from events import Executed, Failed, Refused
from tests.engine.mcp.scripted_server import LOOK, Asked, Status, scripted_server
from tests.engine.mcp.serving import U, mcp_engine, mcp_row
from tests.engine.staging import call, outcome_of
from tests.engine.web_server import raw, redirect, web_server

pytestmark = pytest.mark.anyio

URL = "https://mcp.example/mcp"
CANARY = "zq-7Hf2-secret-canary"

BAD: list[tuple[dict[str, Any], str]] = [
    ({}, "server_url is missing"),
    ({"server_url": "mcp.example/mcp"}, "no URL with http"),
    ({"server_url": "file:///etc/passwd"}, "no URL with http"),
    ({"server_url": "https://"}, "no URL with http"),
    ({"server_url": "http://[::1"}, "no URL with http"),
    ({"server_url": "https://u:p@mcp.example/"}, "carries a user name"),
    ({"server_url": URL, "command": "sh", "args": ["-c", "id"]}, "never started as a program here (command, args)"),
    ({"server_url": URL, "transport_type": "stdio"}, "never started as a program"),
    ({"server_url": URL, "transport_type": "ws"}, "transport_type 'ws' is not known"),
    ({"server_url": URL, "auth_type": "digest"}, "auth_type 'digest' is not known"),
    ({"server_url": URL, "auth_type": "bearer"}, "needs bearer_token"),
    ({"server_url": URL, "auth_type": "basic", "username": "u"}, "needs password"),
    ({"server_url": URL, "auth_type": "api_key"}, "needs api_key"),
    ({"server_url": URL, "timeout": 0}, "timeout must be 1 to 300"),
    ({"server_url": URL, "timeout": 301}, "timeout must be 1 to 300"),
    ({"server_url": URL, "timeout": "soon"}, "timeout must be 1 to 300"),
    ({"server_url": URL, "timeout": True}, "timeout must be 1 to 300"),
    ({"server_url": URL, "headers": ["a"]}, "headers must be an object"),
    ({"server_url": URL, "headers": {"a b": "c"}}, "no name of a header"),
    ({"server_url": URL, "headers": {"X-A": "b\r\nX-C: d"}}, "characters that no header may"),
    ({"server_url": URL, "headers": {"Mcp-Session-Id": "s"}}, "the protocol's own"),
    ({"server_url": URL, "headers": {"Host": "inner"}}, "the protocol's own"),
]


@pytest.mark.parametrize(("config", "expected"), BAD, ids=[expected for _, expected in BAD])
def test_a_configuration_that_names_no_server_is_refused(config: dict[str, Any], expected: str) -> None:
    with pytest.raises(InvalidServer) as raised:
        Server.of(config)
    assert expected in str(raised.value)


def test_transports_are_told_by_the_last_part_of_the_path() -> None:
    def transport(url: str, **config: Any) -> str:
        return Server.of({"server_url": url, **config}).transport

    assert transport("https://classes.example/mcp") == "http"
    assert transport("https://example.com/sse-notes/mcp?x=sse") == "http"
    assert transport("https://example.com/sse") == transport("https://example.com/v1/sse/") == "sse"
    assert transport("https://example.com/sse", transport_type="http") == "http"
    assert transport("https://example.com/mcp", transport_type="sse") == "sse"
    assert Server.of({"server_url": URL, "timeout": "45"}).timeout == 45
    assert Server.of({"server_url": URL}).timeout == 30


def test_the_requirements_name_every_key_and_mark_the_secrets() -> None:
    requirements = MCPTool.get_config_requirements(MCPTool.__new__(MCPTool))
    assert {key for key, each in requirements.items() if each.get("secret")} == {
        "api_key",
        "bearer_token",
        "username",
        "password",
    }
    assert {key for key, each in requirements.items() if each.get("required")} >= {"server_url", "auth_type"}
    assert requirements["api_key"]["depends_on"] == {"auth_type": "api_key"}
    assert (requirements["timeout"]["minimum"], requirements["timeout"]["maximum"]) == (1, 300)


HEADERS: list[tuple[dict[str, Any], str, str]] = [
    ({"auth_type": "bearer", "bearer_token": CANARY}, "authorization", f"Bearer {CANARY}"),
    ({"auth_type": "api_key", "api_key": CANARY}, "x-api-key", CANARY),
    ({"auth_type": "api_key", "api_key": CANARY, "api_key_header": "X-Other"}, "x-other", CANARY),
    (
        {"auth_type": "basic", "username": "user", "password": CANARY},
        "authorization",
        "Basic " + base64.b64encode(f"user:{CANARY}".encode()).decode(),
    ),
    ({"auth_type": "none", "headers": {"X-Auth-Token": CANARY}}, "x-auth-token", CANARY),
]


@pytest.mark.parametrize(("config", "header", "value"), HEADERS)
async def test_credentials_go_with_every_request_and_nowhere_else(
    config: dict[str, Any], header: str, value: str, caplog: pytest.LogCaptureFixture
) -> None:
    def echo(asked: Asked) -> dict[str, Any]:
        heard = asked.headers[header]
        return {"isError": True, "content": [{"type": "text", "text": f"no: {heard}"}]}

    caplog.set_level(logging.DEBUG)
    with scripted_server() as server:
        server.answers["call look"] = echo
        server.answers["tools/list"] = lambda asked: {"tools": [{**LOOK, "description": asked.headers[header]}]}
        async with mcp_engine(mcp_row(server.url, **config)) as engine:
            prepared = await engine.prepare_tools_for_llm(U)
            echoed = await outcome_of(engine, call({"bay": 1}, name="look"), U)
            assert isinstance(echoed, Executed)
            assert echoed.result["error"].startswith("no: ")
            assert {each.headers.get(header) for each in server.asked} == {value}
            server.answers["call look"] = lambda _: {"code": -32000, "message": f"turned down {value}"}
            refused = await outcome_of(engine, call({"bay": 1}, call_id="c2", name="look"), U)
            stored = [record async for record in engine.log.read_all()]
            rows = [await engine.attempt(f"m:c{number}", user_id="u") for number in (1, 2)]
            told = await engine.tool_results("m", user_id="u")
    packed = base64.b64encode(f"user:{CANARY}".encode()).decode()
    for text in map(str, (prepared.functions, echoed, refused, stored, rows, told, caplog.text)):
        assert CANARY not in text
        assert packed not in text


STATUSES: list[tuple[int, str]] = [
    (401, "does not know these credentials (HTTP 401); nothing was done"),
    (403, "does not allow this (HTTP 403); nothing was done"),
    (429, "did not take the request (HTTP 429); nothing was done"),
    (500, "failed (HTTP 500); it may have had its effect"),
    (302, "did not take the request (HTTP 302); nothing was done"),
]


@pytest.mark.parametrize(("status", "expected"), STATUSES)
async def test_a_call_that_is_turned_down_is_made_once_and_said_in_words(status: int, expected: str) -> None:
    def refuse(_: Asked) -> dict[str, Any]:
        raise Status(status, CANARY.encode())

    with scripted_server() as server:
        server.answers["call look"] = refuse
        async with mcp_engine(mcp_row(server.url)) as engine:
            outcome = await outcome_of(engine, call({"bay": 1}, name="look"), U)
            assert isinstance(outcome, Executed)
            assert outcome.status == "error"
            assert expected in outcome.result["error"]
            assert CANARY not in str(outcome)
            assert len(server.calls()) == 1
            # The words of an answer decide nothing: it is an error of the tool, and was run once.
            server.answers["call look"] = lambda _: {
                "isError": True,
                "content": [{"type": "text", "text": "401 unauthorized: session expired, re-authorize"}],
            }
            worded = await outcome_of(engine, call({"bay": 1}, call_id="c2", name="look"), U)
            assert isinstance(worded, Executed)
            assert len(server.calls()) == 2


async def test_a_protocol_error_is_an_error_result_with_the_server_s_words() -> None:
    with scripted_server() as server:
        server.answers["call look"] = lambda _: {"code": -32602, "message": "bay 1 is closed"}
        async with mcp_engine(mcp_row(server.url)) as engine:
            outcome = await outcome_of(engine, call({"bay": 1}, name="look"), U)
            assert isinstance(outcome, Executed)
            assert outcome.status == "error"
            assert "refused: bay 1 is closed" in outcome.result["error"]


async def test_servers_that_are_none_or_not_there_or_inside_are_said_to_be() -> None:
    pages = {"/mcp": raw(b"<html>", "text/html"), "/away": redirect("http://localhost:1/mcp", 307)}
    with web_server(pages) as web, scripted_server() as server:
        entry = {"name": "look", "parameters": {"type": "object", "properties": {}}}
        rows = [
            mcp_row(url, tool_id=f"t{number}", actions_metadata=[{**entry, "name": f"look{number}"}])
            for number, url in enumerate(
                [
                    f"http://127.0.0.1:{web.port}/mcp",
                    f"http://127.0.0.1:{web.port}/away",
                    f"http://127.0.0.1:{web.port}/sse",
                    "http://127.0.0.1:9/mcp",
                ]
            )
        ]
        async with mcp_engine(*rows) as engine:
            for number in range(len(rows)):
                outcome = await outcome_of(engine, call({}, call_id=f"c{number}", name=f"look{number}"), U)
                assert isinstance(outcome, Executed)
                assert outcome.status == "error"
                assert "nothing was done" in outcome.result["error"], outcome.result
        # Without the operator's leave, nothing on this machine is reached.
        row = mcp_row(server.url, actions_metadata=[entry])
        async with Engine.open("sqlite://", rows=[row], settings=Settings()) as engine:
            outcome = await outcome_of(engine, call({}, name="look"), U)
            assert isinstance(outcome, Executed)
            assert outcome.status == "error"
        assert server.asked == []


async def test_arguments_are_sent_as_the_model_gave_them_whatever_they_are_called() -> None:
    names = ("operation", "action_name", "self", "context", "arguments", "name", "request")
    properties = {name: {"type": ["string", "null"]} for name in names}
    given = {**dict.fromkeys(names, "x"), "self": None, "context": ""}
    with scripted_server() as server:
        server.tools = [{"name": "look", "inputSchema": {"type": "object", "properties": properties}}]
        async with mcp_engine(mcp_row(server.url)) as engine:
            outcome = await outcome_of(engine, call(given, name="look"), U)
            assert isinstance(outcome, Executed)
            assert outcome.status == "completed"
        (asked,) = server.calls()
        assert asked.params["arguments"] == given


async def test_a_row_with_a_bad_configuration_fails_its_calls_with_the_reason() -> None:
    entry = {"name": "look", "parameters": {"type": "object", "properties": {}}}
    row = ToolRow(id="t1", name="mcp_tool", user_id="u", config={"command": "sh"}, actions_metadata=[entry])
    async with mcp_engine(row) as engine:
        outcome = await outcome_of(engine, call({}, name="look"), U)
        assert isinstance(outcome, Failed | Executed)
        assert "never started as a program" in str(outcome)


async def test_a_row_that_names_no_server_is_not_stored_and_a_secret_url_is_sealed() -> None:
    plain = {"auth_type": "none", "approval": "never"}
    async with mcp_engine() as engine:
        for change, said in (
            ({"server_url": f"http://u:{CANARY}@h.example/mcp"}, "carries a user name or password"),
            ({"server_url": "h.example/mcp"}, "no URL with http://"),
            ({"server_url": f"https://h.example/mcp?api_key={CANARY}"}, "'api_key', which sounds like a secret"),
            ({"server_url": URL, "headers": {"Host": "x"}}, "the protocol's own"),
        ):
            with pytest.raises(Refused) as raised:
                await engine.rows.add(ToolRow.new("mcp_tool", config={**plain, **change}), user_id="u")
            assert said in str(raised.value)
            assert CANARY not in str(raised.value)
        kept = await engine.rows.add(ToolRow.new("mcp_tool", config={**plain, "server_url": URL}), user_id="u")
        with pytest.raises(Refused, match="user name or password"):
            await engine.rows.edit(kept.id, user_id="u", config={**plain, "server_url": f"http://u:{CANARY}@h/"})
    with scripted_server() as server:
        async with mcp_engine() as engine:
            secret = {"server_url": f"{server.url}?api_key={CANARY}"}
            row = await engine.rows.add(ToolRow.new("mcp_tool", config=plain), user_id="u", secrets=secret)
            assert row.config == plain
            outcome = await outcome_of(engine, call({"bay": 1}, name="look"), U)
            assert isinstance(outcome, Executed)
            assert CANARY not in str(await engine.rows.get(row.id, user_id="u"))
