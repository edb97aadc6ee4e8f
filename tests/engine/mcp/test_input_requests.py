"""Servers that ask for input: their calls wait for a person; what needs nobody is answered, a model is refused."""

from __future__ import annotations

from typing import Any

import pytest
from anyio import to_thread
from fastmcp import Context, FastMCP
from fastmcp.tools import InputRequiredToolResult
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

from engine import Engine
from engine.mcp.errors import McpError
from engine.mcp.input_request import InputRequest, answers_to
from events import Executed, Paused
from tests.engine.mcp.scripted_server import Asked, scripted_server
from tests.engine.mcp.serving import U, mcp_engine, mcp_row, real_server
from tests.engine.staging import call, outcome_of, proved

pytestmark = pytest.mark.anyio

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"bay": {"type": "integer"}}, "required": ["bay"]}


def asking_server() -> FastMCP[Any]:
    server: FastMCP[Any] = FastMCP("yard")

    @server.tool
    async def move(what: str, ctx: Context) -> Any:
        answers = ctx.input_responses or {}
        if "where" not in answers:
            params = ElicitRequestFormParams(message=f"Where does {what} go?", requested_schema=SCHEMA)
            asked: Any = {"where": ElicitRequest(params=params)}
            return InputRequiredToolResult(InputRequiredResult(input_requests=asked, request_state=f"moving {what}"))
        answer: Any = answers["where"]
        return f"{answer.action} {answer.content}"

    return server


async def answered(engine: Engine, answer: Any, key: str = "m:c1") -> Any:
    return [event async for event in engine.submit_result(key, answer, U)][-1]


async def test_a_server_that_asks_makes_its_call_wait_and_gets_the_answer() -> None:
    with real_server(asking_server()) as url:
        async with mcp_engine(mcp_row(url)) as engine:
            paused = await outcome_of(engine, call({"what": "crate"}, name="move"), U)
            assert isinstance(paused, Paused)
            assert paused.pause_type == "requires_input"
            assert paused.reason == "Where does crate go?"
            assert paused.request["input_requests"]["where"]["requestedSchema"] == SCHEMA
            # An answer that is none is asked for again.
            again = await answered(engine, ["B7"])
            assert isinstance(again, Paused)
            assert again.reason == "the answer must be an object"
            outcome = await answered(engine, {"bay": 7})
            assert isinstance(outcome, Executed)
            assert outcome.result["content"][0]["text"] == "accept {'bay': 7}"
            await proved(engine)


async def test_an_answer_may_decline_and_another_worker_may_take_it(sqlite_url: str) -> None:
    with real_server(asking_server()) as url:
        async with mcp_engine(mcp_row(url), url=sqlite_url) as engine:
            assert isinstance(await outcome_of(engine, call({"what": "crate"}, name="move"), U), Paused)
        async with mcp_engine(mcp_row(url), url=sqlite_url) as engine:
            outcome = await answered(engine, {"where": {"action": "decline"}})
            assert isinstance(outcome, Executed)
            assert outcome.result["content"][0]["text"].startswith("decline")


async def test_the_older_form_is_declined_within_the_call() -> None:
    server: FastMCP[Any] = FastMCP("yard")

    @server.tool
    async def ask(ctx: Context) -> str:
        answer: Any = await ctx.elicit("Where?", response_type=str)
        return str(answer.action)

    # Over SSE the protocol before 2026 is spoken.
    with real_server(server, "sse") as url:
        async with mcp_engine(mcp_row(url)) as engine:
            outcome = await outcome_of(engine, call({}, name="ask"), U)
            assert isinstance(outcome, Executed)
            assert outcome.result["content"][0]["text"] == "decline"


async def test_what_a_server_asks_while_a_call_runs_is_answered_at_once() -> None:
    wanted: dict[str, dict[str, Any]] = {
        "elicitation/create": {"message": "Where?", "requestedSchema": SCHEMA},
        "roots/list": {},
        "sampling/createMessage": {"messages": [], "maxTokens": 1},
        "ping": {},
        "no/such": {},
    }
    with scripted_server() as server:
        server.notices = [
            {"jsonrpc": "2.0", "id": f"r{number}", "method": method, "params": params}
            for number, (method, params) in enumerate(wanted.items())
        ]
        async with mcp_engine(mcp_row(server.url)) as engine:
            outcome = await outcome_of(engine, call({}, name="look"), U)
            assert isinstance(outcome, Executed)
            assert outcome.status == "completed"
            assert await to_thread.run_sync(server.until, lambda: len(answers(server.asked)) == len(wanted))
            replies = answers(server.asked)
            assert replies["r0"] == {"action": "decline"}
            assert replies["r1"] == {"roots": []}
            assert replies["r2"]["code"] < 0
            assert replies["r3"] == {}
            assert replies["r4"]["code"] == -32601


def answers(asked: list[Asked]) -> dict[str, Any]:
    sent = [each.content for each in asked if "id" in each.content and not each.method]
    return {each["id"]: each.get("result", each.get("error")) for each in sent}


def asks(**requests: Any) -> dict[str, Any]:
    methods = {"where": "elicitation/create", "roots": "roots/list", "model": "sampling/createMessage"}
    stated = {name: {"method": methods.get(name, "other/thing"), "params": each} for name, each in requests.items()}
    return {"resultType": "input_required", "inputRequests": stated, "requestState": "s"}


def test_what_needs_nobody_is_answered_and_a_model_never_given() -> None:
    assert InputRequest.of({"content": []}) is None
    request = InputRequest.of(asks(where={"message": "Where?"}, roots=None))
    assert request == InputRequest({"where": {"message": "Where?"}}, {"roots": {"roots": []}}, "s")
    for name in ("model", "other"):
        with pytest.raises(McpError, match="does not get"):
            InputRequest.of(asks(where={}, **{name: {}}))


ANSWERS: list[tuple[Any, Any]] = [
    # what comes back, what goes to the server for a single question
    ({"bay": 7}, {"action": "accept", "content": {"bay": 7}}),
    ({"where": {"bay": 7}}, {"action": "accept", "content": {"bay": 7}}),
    ({"action": "cancel"}, {"action": "cancel"}),
    ({"where": {"action": "accept", "content": {"bay": 7}}}, {"action": "accept", "content": {"bay": 7}}),
    ({}, {"action": "accept", "content": {}}),
    ({"where": 7}, {"action": "accept", "content": {"where": 7}}),
]


@pytest.mark.parametrize(("answer", "sent"), ANSWERS)
def test_an_answer_is_taken_in_the_forms_in_which_it_comes(answer: Any, sent: Any) -> None:
    request = {"input_requests": {"where": {}}, "answered": {"roots": {"roots": []}}, "request_state": "s"}
    given = answers_to(request, answer)
    assert given == InputRequest({}, {"roots": {"roots": []}, "where": sent}, "s")


def test_an_answer_to_several_questions_names_each() -> None:
    request: dict[str, Any] = {"input_requests": {"a": {}, "b": {}}, "answered": {}, "request_state": None}
    assert answers_to(request, {"a": {}}) == "the answer must have one entry for each of a, b"
    assert answers_to(request, {"a": {}, "b": 5}) == "the answer to b must be an object"
    assert isinstance(answers_to(request, {"a": {}, "b": {}}), InputRequest)
    assert answers_to(None, {}) == answers_to(request, "text") == "the answer must be an object"


async def test_a_server_that_asks_for_ever_or_for_a_model_is_an_error_result() -> None:
    with scripted_server() as server:
        async with mcp_engine(mcp_row(server.url)) as engine:
            server.answers["call look"] = lambda _: asks(roots=None)
            endless = await outcome_of(engine, call({}, name="look"), U)
            server.answers["call look"] = lambda _: asks(model={})
            model = await outcome_of(engine, call({}, call_id="c2", name="look"), U)
    assert isinstance(endless, Executed)
    assert isinstance(model, Executed)
    assert "never comes to a result" in endless.result["error"]
    assert "the use of a model" in model.result["error"]
    assert (endless.status, model.status) == ("error", "error")
