"""No secret is shown: a canary of each kind is looked for in the log, its tables, spans, metrics, log lines and errors.

(DESIGN 8, 7.)
"""

from __future__ import annotations

import logging
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint
from sqlalchemy import MetaData, select

from engine import Engine, ResultGuard, Settings, Tool, ToolRow
from engine.contract import Scope
from engine.credentials import MasterKeys, Vault
from engine.guards import GuardVerdict, Redact, Withhold
from engine.schema import metadata as engine_tables
from events import Executed, Failed, to_wire
from events.schema import metadata as event_tables
from events.transitions import kind_of
from projections.schema import metadata as projection_tables
from tests.engine.gating import resumed
from tests.engine.staging import CONTEXT, call, events_of, outcome_of, row_of, staged, staged_engine, tool_of
from tests.engine.station import Station

__all__ = ()

pytestmark = pytest.mark.anyio

CANARY = "canary-0b7e66"
KEYS = MasterKeys("k1", {"k1": b"1" * 32})
TABLES: tuple[MetaData, ...] = (event_tables, projection_tables, engine_tables)
NAMED = {"type": "object", "properties": {"name": {"type": "string"}}}


async def kept(engine: Engine) -> str:
    """Return everything that the journal's database holds."""
    tables = [table for metadata in TABLES for table in metadata.sorted_tables]
    rows = [await engine.log.store.read(select(*table.c)) for table in tables]
    assert any(rows)
    return repr(rows)


class Witness:
    """What is shown besides the database and the events."""

    def __init__(self, station: Station, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        self._station = station
        self._caplog = caplog

    def traces(self) -> str:
        """Return every span, metric and log line."""
        spans = self._station.all_of_it()
        assert "execute_tool" in spans
        return spans + self._caplog.text + repr([record.args for record in self._caplog.records])


@pytest.fixture
def witness(station: Station, caplog: pytest.LogCaptureFixture) -> Witness:
    return Witness(station, caplog)


class Shy(Tool):
    """Breaks, at the place that its configuration names, with an error that quotes the key it was given."""

    name = "shy"
    cacheable = False
    made = 0

    def __init__(self, config: dict[str, Any], scope: Scope) -> None:
        super().__init__(config, scope)
        type(self).made += 1
        # The first instance is only asked for its actions.
        if config["breaks"] == "constructor" and self.made > 1:
            self.give_up()

    def give_up(self) -> None:
        key = self.config["connection"]["api_key"]
        raise ConnectionError(f"the server refused {key!r}", {"key": key})

    def get_actions_metadata(self) -> list[dict[str, Any]]:
        if self.config["breaks"] == "metadata":
            self.give_up()
        return [{"name": "bump", "description": "It bumps.", "parameters": NAMED}]

    def get_config_requirements(self) -> dict[str, Any]:
        return {}

    async def execute_action(self, action_name: str, /, **kwargs: Any) -> Any:
        if self.config["breaks"] == "action":
            self.give_up()
        return "fine"


class Asked(Shy):
    """Is asked at the moment of the call."""

    def preview_decision(self, action_name: str, arguments: dict[str, Any]) -> tuple[bool, bool]:
        if self.config["breaks"] == "preview":
            self.give_up()
        return False, False


@pytest.mark.parametrize(
    ("breaks", "tool", "expected"),
    [
        ("metadata", Shy, "unknown_tool"),
        ("constructor", Shy, "load"),
        ("constructor", Asked, "paused"),
        ("preview", Asked, "paused"),
        ("action", Shy, "exception"),
        ("nothing", Asked, "executed"),
    ],
)
async def test_a_secret_of_a_configuration_is_shown_nowhere(
    journal_url: str, witness: Witness, breaks: str, tool: type[Shy], expected: str
) -> None:
    own = type("Own", (tool,), {"name": "shy", "made": 0})
    config = {"breaks": breaks, "connection": {"api_key": CANARY}}
    sealed = Vault(KEYS).seal({"password": CANARY}, owner="u", row_id="t1")
    row = ToolRow(id="t1", name="shy", user_id="u", config=config, credentials=sealed)
    async with staged_engine(journal_url, own, rows=[row], settings=Settings(master_keys=KEYS)) as engine:
        events = await events_of(engine, call({"name": "n"}))
        last = events[-1]
        assert (last.kind if isinstance(last, Failed) else kind_of(last)) == expected
        prepared = await engine.prepare_tools_for_llm(CONTEXT, family="openai")
        told = await engine.tool_results("m", user_id="u", family="openai", close_open=True)
        shown = [*events, *map(to_wire, events), prepared, told, engine, row, engine.statistics()]
        assert CANARY not in repr(shown)
        assert CANARY not in await kept(engine)
    assert CANARY not in witness.traces()


class Careful(ResultGuard):
    """Takes the canary out, withholds the whole, or fails with an error that quotes what it was shown."""

    async def inspect(self, text: str, call: Any, /) -> GuardVerdict:
        if "fails" in text:
            raise ValueError(text)
        return Withhold("named") if "withhold" in text else Redact(text.replace(CANARY, "***"))


async def repeat(name: str = "") -> dict[str, str]:
    return {"said": name, "secret": CANARY, "hidden": CANARY[:6] + "\0" + CANARY[6:]}


@pytest.mark.parametrize("way", ["redact", "withhold", "fails"])
async def test_what_a_guard_keeps_back_is_shown_nowhere(journal_url: str, witness: Witness, way: str) -> None:
    async with staged_engine(journal_url, tool_of(repeat, parameters=NAMED), guards=[Careful()]) as engine:
        events = await events_of(engine, call({"name": way}))
        assert isinstance(events[-1], Executed)
        assert await events_of(engine, call({"name": way})) == events
        told = await engine.tool_results("m", user_id="u", family="openai")
        row = await row_of(engine)
        assert CANARY not in repr([*events, *map(to_wire, events), told, row, row.result])
        assert CANARY not in await kept(engine)
    assert CANARY not in witness.traces()


@pytest.mark.parametrize("way", ["returns", "raises", "is left"])
async def test_arguments_and_results_stand_in_the_log_and_in_no_trace(
    journal_url: str, witness: Witness, way: str
) -> None:
    async def says(name: str) -> str:
        if way == "raises":
            raise ValueError(name)
        if way == "is left":
            leaving.cancel()
        await checkpoint()
        return name

    async with staged(journal_url, says, parameters=NAMED) as engine:
        with anyio.CancelScope() as leaving:
            assert CANARY in repr(await events_of(engine, call({"name": CANARY})))
        assert leaving.cancelled_caught is (way == "is left")
        assert (await row_of(engine)).status == {"returns": "executed"}.get(way, "failed")
        assert CANARY in await kept(engine)
    assert CANARY not in witness.traces()


async def says(name: str) -> str:
    return name


async def test_what_people_write_of_a_gated_call_stands_in_no_trace(journal_url: str, witness: Witness) -> None:
    async with staged(journal_url, says, parameters=NAMED, metadata={"require_approval": True}) as engine:
        for number, approve in enumerate((True, False)):
            await outcome_of(engine, call({"name": CANARY}, call_id=f"c{number}"))
            await engine.decide(f"m:c{number}", approve=approve, by="ada", user_id="u", comment=CANARY)
        assert isinstance(await resumed(engine, "m:c0"), Executed)
        assert CANARY in await kept(engine)
    assert CANARY not in witness.traces()
