"""A row's credentials reach its tool, opened as its owner; whoever else's they are used for is on record."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from sqlalchemy import select

from engine import CallContext, Engine, Settings, Tool, ToolContext, ToolRow
from engine.credentials import MasterKeys, Vault
from engine.schema import tool_credential_delegations
from events import Executed, Failed
from events.errors import LogUnavailable
from events.keys import tenant_column
from tests.engine.staging import call, outcome_of, staged_engine, tool_of

__all__ = ()

pytestmark = pytest.mark.anyio

CANARY = "canary-9d07"
KEYS = MasterKeys("k1", {"k1": b"1" * 32})
VAULT = Vault(KEYS)
SETTINGS = Settings(master_keys=KEYS)


class Shows(Tool):
    """Keeps what it was given, and says which keys that has."""

    name = "shows"
    seen: dict[str, Any]

    def get_actions_metadata(self) -> list[dict[str, Any]]:
        return [{"name": "bump", "parameters": {"type": "object", "properties": {}}}]

    def get_config_requirements(self) -> dict[str, Any]:
        return {}

    async def execute_action(self, action_name: str, /, **kwargs: Any) -> Any:
        type(self).seen = self.config
        return sorted(self.config)


def blob(owner: str | None, row_id: str = "t1", **secrets: Any) -> str:
    sealed = VAULT.seal(secrets or {"api_key": CANARY}, owner=owner, row_id=row_id)
    assert sealed is not None
    return sealed


def by(user_id: str | None, agent_id: str | None = None) -> CallContext:
    return CallContext(user_id=user_id, message_id="m", agent_id=agent_id, tool_ids=("t1",))


async def delegations(engine: Engine) -> list[dict[str, Any]]:
    table = tool_credential_delegations
    rows = await engine.log.store.read(select(*table.c))
    return [dict(zip(table.c.keys(), row, strict=True)) for row in rows]


async def test_behaviour_130_the_owner_s_credentials_run_for_others_and_that_is_on_record(
    journal_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="calljournal.audit")
    row = ToolRow(id="t1", name="shows", user_id="alice", credentials=blob("alice"))
    async with staged_engine(journal_url, Shows, rows=[row], settings=SETTINGS) as engine:
        assert isinstance(await outcome_of(engine, call(), by("alice")), Executed)
        assert await delegations(engine) == []
        assert not caplog.records
        assert isinstance(await outcome_of(engine, call(), by("bob", "agent7")), Executed)
        assert Shows.seen["api_key"] == CANARY
        (record,) = await delegations(engine)
        assert isinstance(await outcome_of(engine, call(), by(None, "agent7")), Executed)
        assert [each["invoker"] for each in await delegations(engine)] == [tenant_column("bob"), tenant_column(None)]
    told = {
        name: record[name] for name in ("owner", "invoker", "tool_id", "tool_name", "action_name", "agent_id", "key")
    }
    assert told == {
        "owner": tenant_column("alice"),
        "invoker": tenant_column("bob"),
        "tool_id": "t1",
        "tool_name": "shows",
        "action_name": "bump",
        "agent_id": "agent7",
        "key": "m:c1",
    }
    assert record["at"] is not None
    line = caplog.records[0].getMessage()
    assert all(word in line for word in ("'alice'", "'bob'", "t1", "shows", "agent7", "m:c1"))
    assert CANARY not in caplog.text


async def test_behaviour_130_what_was_agreed_by_oauth_is_its_owner_s_too(sqlite_url: str) -> None:
    row = ToolRow(id="t1", name="shows", user_id="alice", config={"auth_type": "oauth"})
    async with staged_engine(sqlite_url, Shows, rows=[row], settings=SETTINGS) as engine:
        assert isinstance(await outcome_of(engine, call(), by("bob", "agent7")), Executed)
        (record,) = await delegations(engine)
    assert (record["owner"], record["invoker"]) == (tenant_column("alice"), tenant_column("bob"))


async def test_behaviour_130_a_row_without_owner_opens_as_who_calls(sqlite_url: str) -> None:
    row = ToolRow(id="t1", name="shows", credentials=blob("bob"))
    async with staged_engine(sqlite_url, Shows, rows=[row], settings=SETTINGS) as engine:
        assert isinstance(await outcome_of(engine, call(), by("bob")), Executed)
        assert Shows.seen["api_key"] == CANARY
        other = await outcome_of(engine, call(), by("carol"))
        assert isinstance(other, Failed)
        assert other.kind == "load"
        assert await delegations(engine) == []


@pytest.mark.parametrize("place", ["the row", "its configuration", "both"])
async def test_behaviour_131_credentials_are_merged_and_the_stored_row_is_as_it_was(
    sqlite_url: str, place: str
) -> None:
    config: dict[str, Any] = {"api_key": "old", "other": 1}
    if place != "the row":
        config["encrypted_credentials"] = blob("u", api_key="older", token=CANARY)
    sealed = None if place == "its configuration" else blob("u", api_key=CANARY)
    row = ToolRow(id="t1", name="shows", user_id="u", config=config, credentials=sealed)
    kept = dict(config)
    async with staged_engine(sqlite_url, Shows, rows=[row], settings=SETTINGS) as engine:
        assert isinstance(await outcome_of(engine, call(), by("u")), Executed)
    credentials: dict[str, Any] = {
        "the row": {"api_key": CANARY},
        "its configuration": {"api_key": "older", "token": CANARY},
        "both": {"api_key": CANARY, "token": CANARY},
    }[place]
    assert Shows.seen == {"other": 1, **credentials, "auth_credentials": credentials}
    assert row.config == kept == config
    assert row.credentials == sealed


@pytest.mark.parametrize(
    "sealed",
    [
        pytest.param(CANARY, id="no blob"),
        pytest.param(blob("alice"), id="another owner's"),
        pytest.param(blob("u", "t2"), id="another row's"),
        pytest.param(blob("u").replace("k1", "k9"), id="an unknown key's"),
        pytest.param(blob("u")[:-3] + "AAA", id="damaged"),
    ],
)
@pytest.mark.parametrize("legacy", [False, True])
async def test_behaviour_131_credentials_that_do_not_open_fail_the_call_and_show_nothing(
    sqlite_url: str, caplog: pytest.LogCaptureFixture, sealed: str, legacy: bool
) -> None:
    config = {"encrypted_credentials": sealed} if legacy else {}
    row = ToolRow(id="t1", name="shows", user_id="u", config=config, credentials=None if legacy else sealed)
    async with staged_engine(sqlite_url, Shows, rows=[row], settings=SETTINGS) as engine:
        failed = await outcome_of(engine, call(), by("u"))
    assert isinstance(failed, Failed)
    assert failed.kind == "load"
    assert "shows" in failed.message
    assert "t1" in failed.message
    assert any(hint in failed.message for hint in ("store them again", "is the master key another one"))
    assert sealed not in failed.message + caplog.text
    assert CANARY not in failed.message + caplog.text


async def test_credentials_that_cannot_be_opened_for_want_of_a_key_say_which_variable(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CALLJOURNAL_MASTER_KEY", CANARY)
    row = ToolRow(id="t1", name="shows", user_id="u", credentials=blob("u"))
    async with staged_engine(sqlite_url, Shows, rows=[row]) as engine:
        failed = await outcome_of(engine, call(), by("u"))
    assert isinstance(failed, Failed)
    assert failed.kind == "load"
    assert "CALLJOURNAL_MASTER_KEY" in failed.message
    assert CANARY not in failed.message


async def test_without_the_record_the_tool_is_not_run(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    async def runs() -> str:
        ran.append("ran")
        return "ran"

    async def away(statements: Any) -> list[int]:
        raise LogUnavailable("the disk is full")

    row = ToolRow(id="t1", name="counter", user_id="alice", credentials=blob("alice"))
    async with staged_engine(sqlite_url, tool_of(runs), rows=[row], settings=SETTINGS) as engine:
        monkeypatch.setattr(engine.log.store, "write", away)
        failed = await outcome_of(engine, call(), by("bob"))
        monkeypatch.undo()
    assert isinstance(failed, Failed)
    assert failed.kind == "load"
    assert "could not be recorded" in failed.message
    assert ran == []


async def test_the_record_is_written_before_the_tool_runs(sqlite_url: str) -> None:
    counted: list[int] = []

    async def runs() -> str:
        counted.append(len(await delegations(engine)))
        return "ran"

    row = ToolRow(id="t1", name="counter", user_id="alice", credentials=blob("alice"))
    async with staged_engine(sqlite_url, tool_of(runs), rows=[row], settings=SETTINGS) as engine:
        assert isinstance(await outcome_of(engine, call(), by("bob")), Executed)
    assert counted == [1]


async def test_behaviour_136_who_calls_reaches_a_tool_through_its_context_and_no_instance(sqlite_url: str) -> None:
    seen: list[tuple[Any, ...]] = []

    async def runs(context: ToolContext) -> None:
        seen.append((context.user_id, context.agent_id, context.message_id, context.conversation_id))

    row = ToolRow(id="t1", name="counter", credentials=None)
    tool = tool_of(runs, wants_context=True)
    async with staged_engine(sqlite_url, tool, rows=[row], settings=SETTINGS) as engine:
        for agent, conversation in (("a1", "c1"), ("a2", "c2")):
            context = CallContext(
                user_id="u", message_id=f"m-{agent}", agent_id=agent, conversation_id=conversation, tool_ids=("t1",)
            )
            assert isinstance(await outcome_of(engine, call(), context), Executed)
    assert seen == [("u", "a1", "m-a1", "c1"), ("u", "a2", "m-a2", "c2")]
