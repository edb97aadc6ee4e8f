"""``verify`` finds every way in which a table can be wrong."""

from __future__ import annotations

from typing import Any

import pytest

from events import EventLog
from projections import rebuild, verify
from projections.columns import COLUMN_NAMES
from tests.lives import live_all
from tests.logs import tamper

__all__ = ()

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> Any:
    """What is found lies in the tables: one event loop is enough."""
    return "asyncio"


OTHER_VALUES = {
    "stream": "stream + 1000000",
    "status": "CASE status WHEN 'proposed' THEN 'failed' ELSE 'proposed' END",
    "gate": "CASE gate WHEN 'open' THEN 'paused' ELSE 'open' END",
    "headless": "NOT headless",
    "idempotent": "NOT idempotent",
    "late": "NOT late",
    "version": "version + 1",
    "position": "position + 1",
    "arguments": "arguments || ' '",
    "result": "coalesce(result, '') || ' '",
}
MOMENTS = {"expires_at", "proposed_at", "updated_at"}


async def test_a_row_that_differs_in_one_column_is_found(log: EventLog) -> None:
    await live_all(log, tenants=("u",))
    moment = "'2001-02-03T04:05:06.000007+00:00'"
    if log.store.dialect != "sqlite":
        moment = f"CAST({moment} AS timestamptz)"
    for column in COLUMN_NAMES:
        value = OTHER_VALUES.get(column, moment if column in MOMENTS else "'other'")
        await tamper(log, f"UPDATE tool_call_attempts SET {column} = {value} WHERE key = 'm:c7'")
        report = await verify(log)
        assert not report.ok, column
        assert {problem.key for problem in report.problems} <= {"m:c7", "other"}
        if column not in ("stream", "version", "tenant", "key"):
            assert [f"in {column}" in problem.message for problem in report.problems] == [True]
        assert (await rebuild(log)).ok
        assert (await verify(log)).problems == ()


async def test_a_row_that_no_event_made_is_found(log: EventLog) -> None:
    await live_all(log, tenants=("u",))
    columns = ", ".join(COLUMN_NAMES)
    copied = columns.replace("stream", "stream + 1000000").replace(" key,", " 'ghost',")
    await tamper(
        log,
        f"INSERT INTO tool_call_attempts ({columns}) SELECT {copied} FROM tool_call_attempts WHERE key = 'm:c1'",
    )
    assert [(problem.kind, problem.key) for problem in (await verify(log)).problems] == [("row", "ghost")]


WRONGS: dict[str, tuple[str, set[str]]] = {
    "a row removed": ("DELETE FROM tool_call_attempts WHERE key = 'm:c7'", {"stream"}),
    "a row behind": (
        "UPDATE tool_call_attempts SET version = 1, status = 'proposed', gate = 'open', pause_type = NULL, rule = NULL,"
        " result = NULL, result_status = NULL, artifact_id = NULL, worker = 'w', updated_at = proposed_at,"
        " position = stream WHERE key = 'm:c1'",
        {"row"},
    ),
    "all rows removed": ("DELETE FROM tool_call_attempts", {"stream"}),
    "an event removed": ("DELETE FROM tool_call_events WHERE key = 'm:c7' AND version = 3", {"stream"}),
    "the first event removed": ("DELETE FROM tool_call_events WHERE key = 'm:c7' AND version = 1", {"stream"}),
    "the last event removed": ("DELETE FROM tool_call_events WHERE key = 'm:c7' AND version = 5", {"row"}),
    "all events removed": ("DELETE FROM tool_call_events WHERE key = 'm:c7'", {"row", "stream"}),
    "a listing removed": ("DELETE FROM tool_call_streams WHERE key = 'm:c7'", {"stream"}),
    "a listing too many": ("INSERT INTO tool_call_streams VALUES ('uu', 'ghost', 4711)", {"stream"}),
    "a listing of another stream": (
        "UPDATE tool_call_streams SET stream = (SELECT stream FROM tool_call_attempts WHERE key = 'm:c1')"
        " WHERE key = 'm:c7'",
        {"stream"},
    ),
    "text cut off": ("UPDATE tool_call_events SET data = substr(data, 1, 40) WHERE position = 5", {"event"}),
    "text of nothing": ("UPDATE tool_call_events SET data = '' WHERE position = 5", {"event"}),
    "text of another event": (
        "UPDATE tool_call_events SET data = (SELECT data FROM tool_call_events WHERE position = 4) WHERE position = 5",
        {"event"},
    ),
    "another id": ("UPDATE tool_call_events SET id = 'x' WHERE position = 5", {"event"}),
    "another tenant": ("UPDATE tool_call_events SET tenant = 'uv' WHERE position = 5", {"event", "stream"}),
    "other versions": ("UPDATE tool_call_events SET version = version + 10 WHERE key = 'm:c7'", {"stream"}),
    "a long result removed": ("DELETE FROM tool_call_payloads", {"payload"}),
    "a long result changed": ("UPDATE tool_call_payloads SET content = 'y' || content", {"payload"}),
}


@pytest.mark.parametrize("name", WRONGS)
async def test_what_is_wrong_is_found(log: EventLog, name: str) -> None:
    await live_all(log, tenants=("u",))
    assert (await verify(log)).ok
    statement, expected = WRONGS[name]
    await tamper(log, statement)
    report = await verify(log)
    assert not report.ok
    assert {problem.kind for problem in report.problems} <= expected, report.problems
    assert all(str(problem).startswith(problem.kind) for problem in report.problems)
