"""Nobody is waited for during a call."""

from __future__ import annotations

import pytest

from events import Executed
from tests.engine.mcp.scripted_server import scripted_server
from tests.engine.mcp.serving import U, mcp_engine, mcp_row
from tests.engine.staging import call, outcome_of

pytestmark = pytest.mark.anyio


async def test_behaviour_136_a_call_never_waits_for_interactive_consent(sqlite_url: str) -> None:
    entry = {"name": "look", "parameters": {"type": "object", "properties": {}}}
    with scripted_server() as server:
        row = mcp_row(server.url, auth_type="oauth", actions_metadata=[entry])
        async with mcp_engine(row, url=sqlite_url) as engine:
            outcome = await outcome_of(engine, call({}, name="look"), U)
            assert isinstance(outcome, Executed)
            assert outcome.status == "error"
            assert "authorize t1" in outcome.result["error"]
            assert server.asked == []
