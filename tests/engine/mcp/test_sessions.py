"""Whose sessions there are, how long, and what happens when they are over."""

from __future__ import annotations

import gc
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import anyio
import pytest
from mcp_types import HEADER_MISMATCH

from engine import Engine, ToolRow
from engine.contract import Scope
from engine.mcp.server import Server
from engine.mcp.sessions import Sessions, key_of
from engine.services import Services
from engine.tools.mcp_tool import MCPTool
from events import Executed, Failed
from tests.engine.mcp.scripted_server import ScriptedServer, Status, scripted_server
from tests.engine.mcp.serving import LOCAL, U, V, mcp_engine, mcp_row
from tests.engine.staging import call, events_of, outcome_of, proved

pytestmark = pytest.mark.anyio


async def look(engine: Engine, call_id: str = "c1", context: Any = U) -> Executed:
    outcome = await outcome_of(engine, call({"bay": 1}, call_id=call_id, name="look"), context)
    assert isinstance(outcome, Executed)
    return outcome


async def test_case_mcp_01_an_expired_session_is_replaced_and_the_call_made_once_more() -> None:
    with scripted_server() as server:
        async with mcp_engine(mcp_row(server.url)) as engine:
            assert (await look(engine)).status == "completed"
            server.restart()
            server.asked.clear()
            outcome = await look(engine, "c2")
            assert outcome.status == "completed"
            assert [each.session for each in server.calls()] == ["s1", "s2"]
            opening = next(each for each in server.asked if each.method == "initialize")
            assert opening.session is None
            order = [each.method for each in server.asked if each.method.startswith(("initialize", "notif", "tools/c"))]
            assert order == ["tools/call", "initialize", "notifications/initialized", "tools/call"]
            assert len(await events_of(engine, call({"bay": 1}, call_id="c3", name="look"))) == 2
            await proved(engine)


async def test_case_mcp_01_a_second_404_is_one_error_and_the_next_call_starts_clean() -> None:
    def gone(_: Any) -> dict[str, Any]:
        raise Status(404, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}')

    with scripted_server() as server:
        async with mcp_engine(mcp_row(server.url)) as engine:
            server.answers["call look"] = gone
            outcome = await look(engine)
            assert outcome.status == "error"
            assert "nothing was done" in outcome.result["error"]
            assert len(server.calls()) == 2
            del server.answers["call look"]
            assert (await look(engine, "c2")).status == "completed"


async def test_case_mcp_07_a_session_is_used_by_many_tasks_and_closed_by_another() -> None:
    results: list[Any] = []
    with scripted_server() as server:
        tool = MCPTool(mcp_row(server.url).config, _scope())

        async def opened() -> AsyncGenerator[Any, None]:
            # A request's own task opens the session, inside an async generator that is left half way.
            yield await tool.get_actions_metadata()
            yield None

        async def used(bay: int) -> None:
            results.append(await _executed(tool, {"bay": bay}))

        async with anyio.create_task_group() as engine_tasks:
            tool.scope.services.tasks = engine_tasks
            async with aclosing(opened()) as stream:
                assert [each["name"] for each in await anext(stream)] == ["look"]
                async with anyio.create_task_group() as callers:
                    callers.start_soon(used, 1)
                    callers.start_soon(used, 2)
            async with anyio.create_task_group() as closer:
                closer.start_soon(tool.scope.services.aclose)
                await anyio.sleep(0)
            assert not engine_tasks.cancel_scope.cancel_called
        gc.collect()
        assert sorted(str(each.data["content"][0]["text"]) for each in results) == ['{"bay": 1}', '{"bay": 2}']
        assert server.methods().count("initialize") == 1
        assert any(each.verb == "DELETE" for each in server.asked)


def _scope(user_id: str | None = "u", owner: str | None = "u") -> Scope:
    return Scope(user_id=user_id, owner=owner, tool_id="t1", services=Services(LOCAL))


async def _executed(tool: MCPTool, arguments: dict[str, Any]) -> Any:
    from tests.engine.mcp.contexts import tool_context

    return await tool.execute_action("look", tool_context(), **arguments)


async def test_without_an_engine_a_session_lasts_for_one_use() -> None:
    with scripted_server() as server:
        tool = MCPTool(mcp_row(server.url).config, _scope())
        assert (await _executed(tool, {"bay": 3})).status == "completed"
        assert len(tool.scope.services.shared(Sessions)) == 0
        assert server.until(lambda: any(each.verb == "DELETE" for each in server.asked))


async def test_case_mcp_13_two_users_of_one_server_never_share_a_session() -> None:
    rows = {"u": "tU-first-secret", "v": "tV-other-secret"}
    with scripted_server() as server:
        made = [mcp_row(server.url, tool_id=f"t-{who}", user_id=who) for who in rows]
        made = [_with_token(row, rows[str(row.user_id)]) for row in made]
        async with mcp_engine(*made) as engine:
            async with anyio.create_task_group() as both:
                both.start_soon(look, engine, "c1", U)
                both.start_soon(look, engine, "c1", V)
            sessions = {each.headers["authorization"]: each.session for each in server.calls()}
            assert set(sessions) == {f"Bearer {token}" for token in rows.values()}
            assert len(set(sessions.values())) == 2
            for who in rows:
                attempt = await engine.attempt("m:c1", user_id=who)
                assert attempt is not None
                assert attempt.tool_id == f"t-{who}"


def _with_token(row: ToolRow, token: str) -> ToolRow:
    config = {**row.config, "auth_type": "bearer", "bearer_token": token}
    return ToolRow(id=row.id, name=row.name, user_id=row.user_id, config=config, version=row.version)


async def test_case_mcp_13_a_server_without_auth_and_a_shared_row_have_a_session_for_each_user() -> None:
    with scripted_server() as server:
        # A row that is nobody's, and one call cancelled while the other runs.
        async with mcp_engine(mcp_row(server.url, user_id=None)) as engine:
            await look(engine, "c0", U)
            await look(engine, "c0", V)
            server.holding.add("tools/call")
            kept: list[Any] = []

            async def held() -> None:
                kept.append(await look(engine, "c1", V))

            async with anyio.create_task_group() as calls:
                calls.start_soon(held)
                async with anyio.create_task_group() as cancelled:
                    cancelled.start_soon(look, engine, "c1", U)
                    await _until(server, lambda: len(server.calls()) == 4)
                    cancelled.cancel_scope.cancel()
                server.release.set()
            assert kept[0].status == "completed"
            assert len({each.session for each in server.calls()}) == 2
            attempt = await engine.attempt("m:c1", user_id="u")
            assert attempt is not None
            assert attempt.status == "failed"


async def _until(server: ScriptedServer, holds: Any) -> None:
    assert await anyio.to_thread.run_sync(server.until, holds)


def test_case_mcp_13_the_key_covers_every_credential_and_shows_none() -> None:
    url, jwt = "https://mcp.example/mcp", "eyJhbGciOi"
    configs: list[dict[str, Any]] = [
        {"auth_type": "none"},
        {"auth_type": "bearer", "bearer_token": jwt + "A"},
        {"auth_type": "bearer", "bearer_token": jwt + "B"},
        {"auth_type": "api_key", "api_key": "same-secret"},
        {"auth_type": "api_key", "api_key": "same-secret", "api_key_header": "X-Other"},
        {"auth_type": "basic", "username": "a", "password": "one-password"},
        {"auth_type": "basic", "username": "a", "password": "two-password"},
        {"auth_type": "none", "headers": {"X-Tenant": "a-tenant"}},
        {"auth_type": "none", "headers": {"X-Tenant": "b-tenant"}},
        {"auth_type": "none", "transport_type": "sse"},
    ]
    servers = [Server.of({"server_url": url, **config}) for config in configs]
    servers.append(Server.of({"server_url": f"{url}/other"}))
    keys = {key_of(server, _scope(user, owner)) for server in servers for user in ("u", "v") for owner in ("u", None)}
    assert len(keys) == 4 * len(servers)
    for text in (*map(str, keys), *map(repr, servers)):
        assert all(secret not in text for secret in ("same-secret", "one-password", jwt, "a-tenant"))


async def test_a_server_that_wants_headers_of_its_list_is_asked_for_that_and_called_once_more() -> None:
    answers: list[dict[str, Any]] = [
        {"code": HEADER_MISMATCH, "message": "headers"},
        {"content": [{"type": "text", "text": "seen"}]},
    ]
    with scripted_server() as server:
        server.answers["call look"] = lambda _: answers.pop(0)
        tool = MCPTool(mcp_row(server.url).config, _scope())
        assert (await _executed(tool, {"bay": 3})).status == "completed"
        assert [each for each in server.methods() if "tools" in each] == ["tools/call", "tools/list", "tools/call"]


async def test_there_are_only_so_many_sessions_and_the_one_that_rested_longest_goes() -> None:
    with scripted_server() as server:
        async with anyio.create_task_group() as tasks:
            services = Services(LOCAL, tasks=tasks)
            services._shared[Sessions] = sessions = Few(services)
            for user in ("a", "b", "c"):
                scope = Scope(user_id=user, owner="u", tool_id="t1", services=services)
                await _executed(MCPTool(mcp_row(server.url).config, scope), {"bay": 1})
            assert [key[1] for key in sessions._open] == ["b", "c"]
            await services.aclose()


class Few(Sessions):
    """Keeps two."""

    most = 2


class Brief(Sessions):
    """Ends a session at once when nobody uses it."""

    idle = 0.05


async def test_a_session_that_nobody_uses_ends_and_takes_its_sockets_along() -> None:
    with scripted_server() as server:
        async with anyio.create_task_group() as tasks:
            services = Services(LOCAL, tasks=tasks)
            services._shared[Sessions] = sessions = Brief(services)
            tool = MCPTool(mcp_row(server.url).config, Scope(user_id="u", owner="u", tool_id="t1", services=services))
            await _executed(tool, {"bay": 1})
            assert len(sessions) == 1
            await _until(server, lambda: any(each.verb == "DELETE" for each in server.asked))
            await services.aclose()
            assert len(sessions) == 0


async def test_calls_that_run_when_the_engine_stops_are_closed_as_cancelled_or_broken() -> None:
    with scripted_server() as server:
        server.holding.add("tools/call")
        async with mcp_engine(mcp_row(server.url)) as engine:
            outcomes: list[Any] = []

            async def held() -> None:
                outcomes.append(await outcome_of(engine, call({"bay": 1}, name="look"), U))

            async with anyio.create_task_group() as calls:
                calls.start_soon(held)
                await _until(server, lambda: len(server.calls()) == 1)
                await engine._runtime.services.aclose()
            assert isinstance(outcomes[0], Executed | Failed)
            assert "may have had its effect" in str(outcomes[0])
