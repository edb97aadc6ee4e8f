"""An owner's word on a tool's own wish for an approval: what a waiver answers, what not, and how it is kept."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from sqlalchemy import select

from engine import ActionSettings, CallContext, Engine, Grantee, Tool, ToolRow
from engine.contract import AskAgain
from engine.rule import Rule
from engine.schema import tool_rows
from events import Denied, Executed, Paused
from tests.engine.forecasts import refused, row, storing
from tests.engine.staging import call, outcome_of, proved, staged_engine, tool_of

__all__ = ()

pytestmark = pytest.mark.anyio

ASKS, WAIVED, PLAIN = (ActionSettings(name="sell", require_approval=said) for said in (True, False, None))
BOB = Grantee.user("b")


def shop(**facts: Any) -> type[Tool]:
    """Return a tool whose one action asks for approval by itself."""

    async def sell(**given: Any) -> Any:
        return given

    numbers = {"type": "object", "properties": {"n": {"type": "integer"}}}
    asks = {"require_approval": True, "effect": "write"}
    return tool_of(sell, name="shop", action="sell", parameters=numbers, metadata=asks, **facts)


async def sold(engine: Engine, message: str, **context: Any) -> Any:
    return await outcome_of(engine, call({}, name="sell"), CallContext(user_id="u", message_id=message, **context))


async def test_each_of_the_three_holds_at_the_next_call_of_every_worker(journal_url: str) -> None:
    async with storing(journal_url, shop()) as here, storing(journal_url, shop()) as there:
        await here.rows.add(row(name="shop", actions=[PLAIN]), user_id="u")
        for number, (said, ends) in enumerate(
            [(PLAIN, Paused), (WAIVED, Executed), (ASKS, Paused), (WAIVED, Executed)]
        ):
            edited = await here.rows.edit("w1", user_id="u", actions=[said])
            assert edited.actions == [said]
            for place, engine in enumerate((here, there)):
                assert type(await sold(engine, f"m{number}-{place}")) is ends, (said, place)
        assert isinstance(await sold(there, "alone", headless=True), Executed)
        await here.rows.edit("w1", user_id="u", actions=None)
        assert isinstance(await sold(there, "alone-again", headless=True), Denied)
        kept = [each.definition for each in await there.rows.versions("w1", user_id="u")]
        assert [each and each.actions for each in kept] == [[PLAIN], [WAIVED], [ASKS], [WAIVED], None]
        await proved(here)


class Wary(Tool):
    """Asks by its entry, and once more at the moment of the call, as its configuration says."""

    name = "wary"

    def get_actions_metadata(self) -> list[dict[str, Any]]:
        return [{"name": "sell", "parameters": {}, "require_approval": True}]

    def get_config_requirements(self) -> dict[str, Any]:
        return {}

    async def preview_decision(self, action_name: str, arguments: dict[str, Any]) -> tuple[bool, bool]:
        said = self.config["says"]
        if isinstance(said, Exception):
            raise said
        return (said != "nothing", said == "denylist")

    async def execute_action(self, action_name: str, /, **kwargs: Any) -> str:
        return "sold"


class Replacing(Wary):
    name = "replacing"
    live_gate = "replaces"


async def test_a_waiver_never_answers_what_is_asked_at_the_moment_of_the_call(journal_url: str) -> None:
    expected: dict[str, tuple[Any, str | None]] = {
        "nothing": ("nothing", None),
        "asks": ("asks", "live_gate"),
        "denylist": ("denylist", "denylist"),
        "fails": (RuntimeError("away"), "live_gate_failed"),
        "changed": (AskAgain("the server has changed this tool"), "live_gate_failed"),
    }
    for kind in (Wary, Replacing):
        rows = [
            ToolRow(id=name, name=kind.name, user_id="u", config={"says": says}, actions=[WAIVED])
            for name, (says, _) in expected.items()
        ]
        async with staged_engine("sqlite://" if kind is Replacing else journal_url, kind, rows=rows) as engine:
            for name, (_, rule) in expected.items():
                event = await sold(engine, f"{kind.name}-{name}", tool_ids=(name,))
                assert (event.rule if isinstance(event, Paused) else None) == rule, (kind, name, event)
            await proved(engine)


async def test_a_waiver_never_answers_a_rule(sqlite_url: str) -> None:
    async with storing(sqlite_url, shop()) as engine:
        await engine.rows.add(row(name="shop", actions=[WAIVED]), user_id="u")
        rule = await engine.rules.add(Rule(verdict="ask", action="sell"), user_id="u")
        paused = await sold(engine, "ruled")
        assert isinstance(paused, Paused)
        assert (paused.rule or "").startswith(f"rule:{rule.id}")
        assert isinstance(await sold(engine, "ruled-alone", headless=True), Denied)
        await engine.rules.add(Rule(verdict="deny", action="sell", ordinal=1), user_id="u")
        assert isinstance(await sold(engine, "denied"), Denied)


class OldSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of an action as the release before kept them."""

    name: str
    active: bool = True
    description: str | None = None
    require_approval: bool = False
    presets: dict[str, Any] = {}
    pinned: dict[str, Any] = {}
    hidden: tuple[str, ...] = ()


class OldDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """A row as the release before kept it."""

    name: str
    label: str = ""
    active: bool = True
    config: dict[str, Any] = {}
    actions: list[OldSettings] | None = None
    actions_metadata: list[dict[str, Any]] | None = None


async def test_what_an_older_release_kept_waives_nothing_and_it_reads_what_is_kept_now(journal_url: str) -> None:
    async with storing(journal_url, shop()) as engine:
        store, text = engine.log.store, ""
        await engine.rows.add(row(name="shop"), user_id="u")
        for flag, meant in ((False, PLAIN), (True, ASKS)):
            kept = OldDefinition(name="shop", actions=[OldSettings(name="sell", require_approval=flag)])
            text = msgspec.json.encode(kept).decode()
            assert f'"require_approval":{str(flag).lower()}' in text
            await store.write([tool_rows.update().values(definition=text)])
            assert (await engine.rows.get("w1", user_id="u")).row.actions == [meant]
            # Whatever else of it is changed, it is kept anew.
            assert (await engine.rows.edit("w1", user_id="u", label=f"{flag}")).actions == [meant]
            assert isinstance(await sold(engine, f"old-{flag}"), Paused)
        for said, asks in ((ASKS, True), (PLAIN, False), (WAIVED, False)):
            await engine.rows.edit("w1", user_id="u", actions=[said])
            ((text,),) = await store.read(select(tool_rows.c.definition))
            old = msgspec.json.decode(text, type=OldDefinition)
            assert old.actions == [OldSettings(name="sell", require_approval=asks)], "which asks as the tool says"
            assert ("approval_waived" in text) is (said is WAIVED)
        both = text.replace('"require_approval":false', '"require_approval":true')
        await store.write([tool_rows.update().values(definition=both)])
        assert (await engine.rows.get("w1", user_id="u")).row.actions == [ASKS], "both at once is no waiver"
        odd: Any
        for odd in (0, "no", []):
            bad = [ActionSettings(name="sell", require_approval=odd)]
            await refused(engine.rows.edit("w1", user_id="u", actions=bad), "not valid", "require_approval")


async def test_only_its_owner_waives_an_approval(journal_url: str) -> None:
    async with storing(journal_url, shop()) as engine:
        rows = engine.rows
        await rows.add(row(name="shop", actions=[PLAIN]), user_id="u")
        await rows.share("w1", BOB, "editor", user_id="u")
        await refused(rows.edit("w1", user_id="b", actions=[WAIVED]), "only its owner waives", "'sell'")
        await rows.edit("w1", user_id="b", actions=[ASKS])
        await refused(rows.edit("w1", user_id="b", actions=[WAIVED]), "only its owner waives")
        pinned = ActionSettings(name="sell", require_approval=False, pinned={"n": 1})
        await rows.edit("w1", user_id="u", actions=[pinned])
        wider = msgspec.structs.replace(pinned, pinned={})
        await refused(rows.edit("w1", user_id="b", actions=[wider]), "only its owner", "what it is waived for")
        # 1.0 is no 1 in JSON, nor is true, though Python has them equal.
        other = msgspec.structs.replace(pinned, pinned={"n": 1.0})
        await refused(rows.edit("w1", user_id="b", actions=[other]), "only its owner", "what it is waived for")
        await rows.edit("w1", user_id="u", actions=[other])
        assert repr((await rows.get("w1", user_id="u")).row.actions) == repr([other])
        await rows.edit("w1", user_id="u", actions=[pinned])
        off = msgspec.structs.replace(pinned, active=False)
        assert (await rows.edit("w1", user_id="b", actions=[off])).actions == [off]
        await refused(rows.edit("w1", user_id="b", actions=[pinned]), "only its owner")
        assert (await rows.edit("w1", user_id="b", actions=[PLAIN])).actions == [PLAIN]
        assert (await rows.edit("w1", user_id="b", actions=None)).actions is None
        assert isinstance(await sold(engine, "m"), Paused)
