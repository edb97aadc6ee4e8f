"""``engine.rows``: what may be stored, who may change it, and that no change and no secret is ever lost or shown."""

from __future__ import annotations

from typing import Any

import anyio
import msgspec
import pytest
from sqlalchemy import select

from engine import ActionSettings, Engine, Grantee, Tool, ToolRow
from engine.credentials import CredentialsError, MasterKeys, Vault
from engine.defaults import default_id
from engine.schema import tool_row_versions, tool_rows
from events import Conflict, NotFound, Refused
from tests.engine.forecasts import CANARY, KEYS, refused, row, storing
from tests.engine.staging import tool_of

__all__ = ()

pytestmark = pytest.mark.anyio

FORECAST = ActionSettings(name="forecast", description="Ahead", presets={"days": 3}, pinned={"city": "Ulm"})
BOB, ALL = Grantee.user("b"), Grantee.everyone()


async def test_a_row_is_added_looked_at_changed_and_removed(journal_url: str) -> None:
    async with storing(journal_url) as engine:
        rows = engine.rows
        new = ToolRow.new("weather", config={"unit": "F"}, label="mine", actions=[FORECAST])
        added = await rows.add(new, user_id="u", by="ann")
        assert (added.version, added.user_id, added.config, added.actions) == (1, "u", {"unit": "F"}, [FORECAST])
        kept = await rows.get(new.id, user_id="u")
        assert (kept.row, kept.role, kept.has_secrets) == (added, "owner", False)
        assert await rows.list(user_id="u") == [kept]
        assert await rows.list(user_id=None) == []
        edited = await rows.edit(new.id, user_id="u", version=1, label="ours", config={"unit": "C"}, by="bob")
        assert (edited.version, edited.label, edited.config, edited.actions) == (2, "ours", {"unit": "C"}, [FORECAST])
        assert await rows.edit(new.id, user_id="u", label="ours") == edited, "what changes nothing is no change"
        assert (await rows.edit(new.id, user_id="u", active=False, actions=None)).actions is None
        removed = await rows.remove(new.id, user_id="u", version=3, by="cy")
        assert (removed.version, removed.active) == (3, False)
        versions = await rows.versions(new.id, user_id="u")
        told = [(each.version, each.changed_by, each.definition and each.definition.label) for each in versions]
        assert told == [(1, "ann", "mine"), (2, "bob", "ours"), (3, None, "ours"), (4, "cy", None)]
        assert versions[0].changed_at <= versions[-1].changed_at
        await refused(rows.get(new.id, user_id="u"), new.id, kind=NotFound)
        await refused(rows.add(new, user_id="u"), "is, or was, another row's")


async def test_rows_keep_their_order_and_their_owners(journal_url: str) -> None:
    async with storing(journal_url) as engine:
        for identity, owner in (("z", "u"), ("a", "u"), ("m", "v"), ("k", None)):
            await engine.rows.add(row(identity), user_id=owner)
        await engine.rows.share("m", BOB, user_id="v")
        await engine.rows.share("k", ALL, user_id=None)

        async def ids(user_id: str | None) -> list[str]:
            return [kept.row.id for kept in await engine.rows.list(user_id=user_id)]

        assert await ids("u") == ["z", "a", "k"]
        assert await ids("b") == ["k", "m"]
        assert await ids(None) == ["k"]


BAD_CONFIGS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "unknown key": ({"tokn": CANARY}, ("'tokn' is unknown", "api_key, auth_type")),
    "missing secret": ({"auth_type": "bearer"}, ("'api_key' is required where auth_type is bearer (a secret)",)),
    "empty": ({"auth_type": "bearer", "api_key": ""}, ("'api_key' is required",)),
    "gate of several": ({"auth_type": "basic"}, ("'user' is required where auth_type is basic",)),
    "enum": ({"unit": "K"}, ("'unit' must be C or F",)),
    "text": ({"unit": 7}, ("'unit' must be a text",)),
    "number": ({"scale": "1"}, ("'scale' must be a number",)),
    "no truth is a number": ({"scale": True}, ("'scale' must be a number",)),
    "not a number": ({"scale": float("nan")}, ("'scale' must be a number",)),
    "below": ({"scale": 0.4}, ("'scale' must be at least 0.5 and at most 2",)),
    "whole": ({"retries": 1.5}, ("'retries' must be a whole number",)),
    "truth": ({"strict": "yes"}, ("'strict' must be true or false",)),
    "list": ({"offers": "forecast"}, ("'offers' must be a list",)),
    "object": ({"headers": [1]}, ("'headers' must be an object",)),
    "too long": ({"timeout": 301}, ("'timeout' must be at least 1 and at most 300",)),
    "no time": ({"timeout": 0}, ("'timeout' must be at least 1",)),
    "a secret's type": ({"auth_type": "bearer", "api_key": [CANARY]}, ("'api_key' must be a text",)),
    "sealed by hand": ({"encrypted_credentials": CANARY, "auth_credentials": {}}, ("'encrypted_credentials' cannot",)),
    "in the open": ({"headers": {"Authorization": CANARY}}, ("'Authorization', which sounds like a secret",)),
    "all at once": ({"x": 1, "unit": "K", "timeout": 999}, ("'x' is", "'unit' must", "'timeout' must")),
}


async def test_a_configuration_must_be_right(sqlite_url: str) -> None:
    async with storing(sqlite_url) as engine:
        for config, words in BAD_CONFIGS.values():
            await refused(engine.rows.add(row(config=config), user_id="u"), "weather", *words)
        assert await engine.rows.list(user_id="u") == []
        fine = {"scale": 2, "timeout": 300, "retries": 0, "strict": False, "offers": [], "user": "x", "headers": None}
        kept = await engine.rows.add(row(config=fine), user_id="u")
        assert kept.config == {key: value for key, value in fine.items() if value is not None}
        for config, words in BAD_CONFIGS.values():
            await refused(engine.rows.edit("w1", user_id="u", config=config), *words)
        assert (await engine.rows.get("w1", user_id="u")).row == kept


async def test_every_other_key_may_be_allowed_and_secret(sqlite_url: str) -> None:
    class Free(Tool):
        name = "free"

        def get_actions_metadata(self) -> list[dict[str, Any]]:
            return []

        def get_config_requirements(self) -> dict[str, Any]:
            needs = {key: {"required": True, "secret": True} for key in self.config.get("needs", [])}
            return {"needs": {"type": "array"}, **needs, "*": {"secret": True, "type": "string"}}

        def config_problems(self) -> list[str]:
            return [f"{self.config['host']} is not there"] if "host" in self.config else []

        async def execute_action(self, action_name: str, /, **kwargs: Any) -> None: ...

    async with storing(sqlite_url, Free) as engine:
        rows = engine.rows
        await refused(rows.add(row(name="free", config={"any": 7}), user_id="u"), "'any' must be a text")
        await refused(rows.add(row(name="free", config={"needs": ["token"]}), user_id="u"), "'token' is required")
        await refused(rows.add(row(name="free", config={"host": CANARY}), user_id="u"), "*** is not there")
        added = await rows.add(row(name="free", config={"needs": ["token"], "token": CANARY}), user_id="u")
        assert added.config == {"needs": ["token"]}


async def test_secrets_are_sealed_kept_replaced_and_never_shown(journal_url: str) -> None:
    async with storing(journal_url) as engine:
        rows, vault = engine.rows, Vault(KEYS)

        async def stored() -> dict[str, Any]:
            ((blob,),) = await engine.log.store.read(select(tool_rows.c.credentials))
            return {} if blob is None else vault.open(blob, owner="u", row_id="w1")

        config = {"auth_type": "bearer", "api_key": CANARY}
        shown: list[Any] = [await rows.add(row(config=config), user_id="u")]
        assert shown[0].config == {"auth_type": "bearer"}
        assert await stored() == {"api_key": CANARY}
        shown.append(await rows.edit("w1", user_id="u", config={"auth_type": "bearer", "unit": "F"}))
        assert await stored() == {"api_key": CANARY}, "a stored secret is as good as one that is given"
        shown.append(await rows.edit("w1", user_id="u", secrets={"api_key": f"{CANARY}-2"}))
        assert await stored() == {"api_key": f"{CANARY}-2"}
        assert shown[-1].version == 3
        assert (await rows.edit("w1", user_id="u", secrets={"api_key": f"{CANARY}-2"})).version == 3
        await refused(rows.edit("w1", user_id="u", secrets={"api_key": None}), "'api_key' is required")
        shown += await rows.list(user_id="u"), await rows.versions("w1", user_id="u"), await rows.get("w1", user_id="u")
        shown.append(await rows.edit("w1", user_id="u", config={}, secrets={"api_key": None}))
        assert await stored() == {}
        shown.append(await engine.log.store.read(select(*tool_row_versions.c)))
        shown += await rows.remove("w1", user_id="u"), await engine.log.store.read(select(*tool_rows.c))
        assert CANARY not in str(shown)
        assert CANARY not in msgspec.json.encode(shown, enc_hook=str).decode()
        assert "cj1." not in str(shown)


async def test_secrets_that_do_not_open_are_an_error_until_they_are_replaced(sqlite_url: str) -> None:
    config = {"auth_type": "bearer"}
    async with storing(sqlite_url) as engine:
        await engine.rows.add(row(config=config), secrets={"api_key": CANARY}, user_id="u")
        other = Vault(MasterKeys("k1", {"k1": b"2" * 32})).seal({"api_key": CANARY}, owner="u", row_id="w1")
        await engine.log.store.write([tool_rows.update().values(credentials=other)])
        await refused(engine.rows.edit("w1", user_id="u", config=config | {"unit": "F"}), "do not open")
        await refused(
            engine.rows.edit("w1", user_id="u", secrets={"api_key": "new"}), "do not open", kind=CredentialsError
        )
        assert (await engine.rows.edit("w1", user_id="u", label="still works")).version == 2
        replaced = await engine.rows.edit("w1", user_id="u", secrets={"api_key": "new"}, replace_secrets=True)
        assert replaced.version == 3
        await refused(engine.rows.edit("w1", user_id="u", replace_secrets=True), "'api_key' is required")


BAD_ACTIONS: dict[str, tuple[list[ActionSettings], tuple[str, ...]]] = {
    "unknown": ([ActionSettings(name="snow")], ("no action 'snow'", "forecast, warn")),
    "twice": ([ActionSettings(name="warn"), ActionSettings(name="warn")], ("'warn' is said twice",)),
    "preset": ([ActionSettings(name="warn", presets={"q": 1})], ("takes no 'q', so it can be no preset", "city, days")),
    "pinned": ([ActionSettings(name="warn", pinned={"q": 1})], ("no pinned value",)),
    "hidden": ([ActionSettings(name="warn", hidden=("q",))], ("no hidden property",)),
    "both": ([ActionSettings(name="warn", presets={"days": 1}, pinned={"days": 1})], ("either a preset or pinned",)),
    "kind": ([ActionSettings(name="warn", presets={"days": CANARY})], ("days", "integer")),
    "range": ([ActionSettings(name="warn", pinned={"days": 0})], ("days", "minimum")),
    "all": ([ActionSettings(name="x"), ActionSettings(name="warn", hidden=("q",))], ("'x'", "'q'")),
}


async def test_what_is_said_of_actions_must_fit_them(sqlite_url: str) -> None:
    async with storing(sqlite_url) as engine:
        for actions, words in BAD_ACTIONS.values():
            await refused(engine.rows.add(row(actions=actions), user_id="u"), "weather", *words)
        await engine.rows.add(row(actions=[FORECAST]), user_id="u")
        for actions, words in BAD_ACTIONS.values():
            await refused(engine.rows.edit("w1", user_id="u", actions=actions), *words)
        told: list[dict[str, Any]] = [{"name": "snow", "parameters": {"properties": {"cm": {"type": "number"}}}}]
        await engine.rows.edit("w1", user_id="u", actions_metadata=told)
        snow = ActionSettings(name="snow", presets={"cm": 3.5}, require_approval=True)
        assert (await engine.rows.edit("w1", user_id="u", actions=[snow])).actions == [snow]
        await refused(engine.rows.edit("w1", user_id="u", actions=[FORECAST]), "'forecast'")
        moved = await engine.rows.edit("w1", user_id="u", config={"unit": "F"})
        assert moved.actions_metadata is None, "what another server said"


async def test_configured_actions_are_called_by_plain_names(sqlite_url: str) -> None:
    configured = tool_of(print, name="api", actions_in_config=True)
    action = {"description": "d", "body": {"properties": {"n": {"type": "integer"}}}}
    async with storing(sqlite_url, configured) as engine:
        rows = engine.rows
        bad = row(name="api", config={"actions": {"get user": action, "ok": action, "ü": action}})
        said = await refused(rows.add(bad, user_id="u"), "'get user', 'ü'")
        assert "'ok'" not in said
        settings = ActionSettings(name="get_user", pinned={"n": 1})
        good = row(name="api", config={"actions": {"get_user": action}}, actions=[settings])
        assert (await rows.add(good, user_id="u")).actions == [settings]
        await refused(rows.edit("w1", user_id="u", actions=[ActionSettings(name="other")]), "'other'", "get_user")


async def test_ids_and_tools_that_cannot_be_stored(sqlite_url: str) -> None:
    given = row("given", user_id="someone")
    async with storing(sqlite_url, rows=(given,)) as engine:
        for identity in ("ct0", "ct12", "internal", "cli-weather", default_id("clock"), default_id("later"), "given"):
            await refused(engine.rows.add(row(identity), user_id="u"), identity)
        for identity in ("a b", "-a", "ä", "x" * 101, "a\x00", "\ud800", "."):
            await refused(engine.rows.add(row(identity), user_id="u"), "cannot be used")
        await refused(engine.rows.add(row(name="wether"), user_id="u"), "wether", "weather", kind=NotFound)
        await refused(engine.rows.add(row(name="think"), user_id="u"), "think", "takes no rows")
        for bad in ("\x00", "\ud800"):
            await refused(engine.rows.add(row(), user_id=bad), "the user id")
            await refused(engine.rows.add(row(), user_id="u", by=bad), "who adds")
        for odd in (object(), "\ud800"):
            await refused(engine.rows.add(row(config={"headers": {"x": odd}}), user_id="u"), "JSON form")
        for label in ("two\nlines", "x" * 401, "\ud800"):
            await refused(engine.rows.add(row(label=label), user_id="u"), "the label")
        await refused(engine.rows.add(row(active=3), user_id="u"), "not valid", "active")
        assert await engine.rows.list(user_id="u") == []
    async with Engine.open("null://") as engine:
        await refused(engine.rows.add(row(name="notes"), user_id="u"), "stores nothing")
        assert await engine.rows.list(user_id="u") == []


async def test_of_a_built_in_tool_a_user_says_how_it_stands_and_nothing_else(journal_url: str) -> None:
    async with storing(journal_url) as engine:
        rows, identity = engine.rows, default_id("clock")
        for work in (
            rows.edit(identity, user_id="u", label="x"),
            rows.remove(identity, user_id="u"),
            rows.share(identity, BOB, user_id="u"),
            rows.unshare(identity, BOB, user_id="u"),
        ):
            await refused(work, "'clock' is a default tool", "switched off, on, or to asking")
        await refused(rows.edit(default_id("weather"), user_id="u", label="x"), "built-in")
        await refused(rows.edit("internal", user_id="u", label="x"), "built-in")
        for standing in ("off", "off", "ask", "off", "on", "on", "ask"):
            said = await rows.built_ins.set("clock", standing, user_id="u")
            assert (said.standing, said.set_by) == (standing, None if standing == "on" else "user")
            stands = {
                user_id: [each for each in await rows.built_ins.list(user_id=user_id) if each.set_by is not None]
                for user_id in ("u", None)
            }
            assert stands == {"u": [] if standing == "on" else [said], None: []}
        await rows.built_ins.set("weather", "off", user_id="u")
        for name in ("notes", "mcp_tool", "think", "nothing"):
            await refused(rows.built_ins.set(name, "off", user_id="u"), f"no built-in tool {name!r}", "clock")
        await refused(rows.built_ins.set("clock", "maybe", user_id="u"), "'maybe'")  # type: ignore[arg-type]


async def test_no_change_is_lost(journal_url: str) -> None:
    """Seven writers on two engines, each changing something else."""
    async with storing(journal_url) as one, storing(journal_url) as two:
        await one.rows.add(row(config={"headers": {}}), user_id="u")
        texts = {"unit": "F", "scale": 2, "retries": 7, "strict": True}

        async def set_key(engine: Engine, key: str, value: Any) -> None:
            while True:
                kept = (await engine.rows.get("w1", user_id="u")).row
                try:
                    config = {**kept.config, key: value}
                    await engine.rows.edit("w1", user_id="u", config=config, version=kept.version)
                except Conflict:
                    continue
                return

        async def set_rest(engine: Engine, **facts: Any) -> None:
            await engine.rows.edit("w1", user_id="u", **facts)

        async with anyio.create_task_group() as tasks:
            for number, (key, value) in enumerate(texts.items()):
                tasks.start_soon(set_key, (one, two)[number % 2], key, value)
            tasks.start_soon(lambda: set_rest(one, label="named"))
            tasks.start_soon(lambda: set_rest(two, active=False))
            tasks.start_soon(lambda: set_rest(two, actions=[FORECAST]))
        kept = (await two.rows.get("w1", user_id="u")).row
        assert kept.config == {"headers": {}, **texts}
        assert (kept.label, kept.active, kept.actions, kept.version) == ("named", False, [FORECAST], 8)
        versions = await one.rows.versions("w1", user_id="u")
        assert [each.version for each in versions] == list(range(1, 9))


async def test_one_of_several_changes_a_version(journal_url: str) -> None:
    async with storing(journal_url) as one, storing(journal_url) as two:
        await one.rows.add(row(), user_id="u")
        faults: list[Conflict] = []

        async def claim(engine: Engine, label: str) -> None:
            try:
                await engine.rows.edit("w1", user_id="u", label=label, version=1)
            except Conflict as conflict:
                faults.append(conflict)

        async with anyio.create_task_group() as tasks:
            for number in range(8):
                tasks.start_soon(claim, (one, two)[number % 2], f"l{number}")
        assert len(faults) == 7
        assert {str(fault) for fault in faults} == {"tool row 'w1' is at version 2, not 1; look at it again"}
        await refused(two.rows.remove("w1", user_id="u", version=1), "version 2", kind=Conflict)


async def test_one_of_several_adds_under_one_id(journal_url: str) -> None:
    async with storing(journal_url) as one, storing(journal_url) as two:
        ends: list[str] = []
        told: list[str] = []

        async def add(engine: Engine, user_id: str) -> None:
            try:
                ends.append((await engine.rows.add(row(), user_id=user_id)).user_id or "")
            except Refused as refusal:
                told.append(str(refusal))

        async with anyio.create_task_group() as tasks:
            for number in range(6):
                tasks.start_soon(add, (one, two)[number % 2], f"u{number}")
        (owner,) = ends
        assert len(told) == 5
        assert all("another row's" in each for each in told)
        assert [kept.row.user_id for kept in await one.rows.list(user_id=owner)] == [owner]


async def test_a_change_completes_though_its_caller_is_cancelled(journal_url: str) -> None:
    async with storing(journal_url) as engine:
        await engine.rows.add(row(), user_id="u")
        for number in range(3):
            with anyio.CancelScope() as scope:
                store = engine.log.store
                transact = store.transact

                async def cancelled(work: Any, scope: Any = scope, transact: Any = transact) -> Any:
                    scope.cancel()
                    return await transact(work)

                store.transact = cancelled  # type: ignore[method-assign]
                try:
                    await engine.rows.edit("w1", user_id="u", label=f"l{number}")
                finally:
                    store.transact = transact  # type: ignore[method-assign]
            assert scope.cancelled_caught
            assert (await engine.rows.get("w1", user_id="u")).row.label == f"l{number}"
