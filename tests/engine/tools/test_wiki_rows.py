"""``wiki`` through the engine: who may do what follows the row's shares; gate and journal; two users share nothing."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select

from engine import ActionSettings, CallContext, Engine, ToolRow
from engine.sharing import Grantee, SharedRole
from engine.tool_schema import wiki_revisions
from engine.wiki.actions import wiki_actions
from events import Executed, Failed, Paused
from tests.engine.forecasts import refused, storing
from tests.engine.gating import resumed
from tests.engine.staging import call, outcome_of, proved, row_of
from tests.engine.wiki.wikis import everything, failure, links_that_are_wrong, opened, runner

__all__ = ()

pytestmark = pytest.mark.anyio


class Users:
    """Calls of the wiki by users, each call under an id of its own."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.last = ""
        self._count = 0

    async def run(self, user_id: str | None, name: str, /, **arguments: Any) -> Any:
        """Return the outcome of a call."""
        self._count += 1
        self.last = f"m:c{self._count}"
        context = CallContext(user_id=user_id, message_id="m")
        return await outcome_of(self._engine, call(arguments, name=name, call_id=f"c{self._count}"), context)

    async def done(self, user_id: str | None, name: str, /, **arguments: Any) -> str:
        """Return what a call that did what it should says."""
        outcome = await self.run(user_id, name, **arguments)
        assert isinstance(outcome, Executed), outcome
        assert outcome.status == "completed", outcome.result
        return str(outcome.result)

    async def refused(self, user_id: str | None, name: str, /, **arguments: Any) -> str:
        """Return the error result of a call."""
        outcome = await self.run(user_id, name, **arguments)
        assert isinstance(outcome, Executed), outcome
        assert outcome.status == "error"
        return str(outcome.result)


async def lend(engine: Engine, row_id: str, user: str, role: SharedRole = "viewer") -> None:
    """Share a row of u's to a user, who takes it."""
    await engine.rows.share(row_id, Grantee.user(user), role, user_id="u")
    await engine.rows.offers.accept(row_id, user_id=user)


async def test_owner_and_editors_write_and_viewers_read(journal_url: str) -> None:
    async with storing(journal_url) as engine:
        rows, users = engine.rows, Users(engine)
        await rows.add(ToolRow(id="w1", name="wiki"), user_id="u")
        await lend(engine, "w1", "b", "editor")
        await lend(engine, "w1", "c")
        await rows.teams.join("ops", "u")
        await rows.teams.join("ops", "d")
        assert await users.done("u", "wiki_create", path="/p", content="one") == "Page created: /p\nVersion: 1"
        edit = {"path": "/p", "content": "two", "expected_version": 1}
        for action in wiki_actions():
            if action["effect"] != "read":
                said = await users.refused("c", action["name"], **arguments_for(action))
                assert said.startswith("Error: You may read this wiki, not change it"), action["name"]
        assert "\none\n" in await users.done("c", "wiki_view", path="/p")
        assert await users.done("b", "wiki_write", **edit) == "Page updated: /p\nVersion: 2"
        # The pages are the owner's, whoever wrote them; the call is the caller's.
        assert (await row_of(engine, users.last, "b")).status == "executed"
        columns = wiki_revisions.c
        made = select(columns.tenant, columns.wiki, columns.changed_by, columns.by_call).order_by(columns.version)
        assert [tuple(row) for row in await engine.log.store.read(made)] == [
            ("uu", "w1", "u", "m:c1"),
            ("uu", "w1", "b", users.last),
        ]
        edit["expected_version"] = 2
        assert isinstance(await users.run("d", "wiki_write", **edit), Failed)
        await rows.share("w1", Grantee.team("ops"), "editor", user_id="u")
        assert (
            await users.done("d", "wiki_write", **edit)
            == "Page updated: /p\nVersion: 2 (it said so already; nothing was written)"
        )
        await rows.share("w1", Grantee.team("ops"), user_id="u")
        await rows.share("w1", Grantee.user("b"), user_id="u")
        for user in ("b", "d"):
            assert "You may read this wiki" in await users.refused(user, "wiki_write", **edit)
        await rows.edit("w1", user_id="u", config={"everyone_writes": True})
        assert await users.done("c", "wiki_delete", path="/p") == "Deleted: /p"
        await rows.unshare("w1", Grantee.user("c"), user_id="u")
        assert isinstance(await users.run("c", "wiki_view", path="/p"), Failed)
        await proved(engine)


def arguments_for(action: dict[str, Any]) -> dict[str, Any]:
    """Return arguments that an action's schema takes."""
    parameters = action["parameters"]
    values = {"string": "/x", "integer": 1, "boolean": True}
    return {name: values[parameters["properties"][name]["type"]] for name in parameters["required"]}


async def test_rows_of_one_owner_share_a_wiki_by_its_name_and_no_one_elses(journal_url: str) -> None:
    async with storing(journal_url) as engine:
        rows, users = engine.rows, Users(engine)
        for row_id, owner in (("one", "u"), ("two", "b")):
            await rows.add(ToolRow(id=row_id, name="wiki", config={"wiki": "team"}), user_id=owner)
        for wrong in ({"wiki": "x" * 201}, {"wiki": 5}, {"everyone_writes": "yes"}, {"source": "x"}):
            await refused(rows.edit("one", user_id="u", config=wrong), "cannot be used")
        await users.done("u", "wiki_create", path="/p", content="u's")
        assert await users.done("b", "wiki_list") == "Directory: /\n(empty)"
        # Another row of the owner's opens the same wiki to others.
        await rows.add(ToolRow(id="three", name="wiki", config={"wiki": "team"}, active=False), user_id="u")
        await lend(engine, "three", "c")
        await rows.edit("three", user_id="u", active=True)
        assert "u's" in await users.done("c", "wiki_view", path="/p")
        await rows.edit("three", user_id="u", active=False)
        await rows.edit("one", user_id="u", config={})
        assert await users.done("u", "wiki_list") == "Directory: /\n(empty)"
        await rows.edit("one", user_id="u", config={"wiki": "team"})
        assert "u's" in await users.done("u", "wiki_view", path="/p")
        assert isinstance(await users.run("u", "wiki_create", path="/q"), Failed)
        for lacking in ({"path": "/p", "content": "x"}, {"path": "/p", "content": "x", "expected_version": 0}):
            outcome = await users.run("u", "wiki_write", **lacking)
            assert isinstance(outcome, Failed)
            assert "expected_version" in outcome.message


async def test_a_person_may_have_to_agree_first(journal_url: str) -> None:
    async with storing(journal_url) as engine:
        users = Users(engine)
        names = [action["name"] for action in wiki_actions()]
        actions = [ActionSettings(name=name, require_approval=name == "wiki_write") for name in names]
        await engine.rows.add(ToolRow(id="w1", name="wiki", actions=actions), user_id="u")
        await users.done("u", "wiki_create", path="/p", content="one")
        outcome = await users.run("u", "wiki_write", path="/p", content="two", expected_version=1)
        assert isinstance(outcome, Paused)
        assert "one" in await users.done("u", "wiki_view", path="/p")
        key = "m:c2"
        await engine.decide(key, approve=True, by="alice", user_id="u")
        executed = await resumed(engine, key)
        assert isinstance(executed, Executed)
        assert executed.result == "Page updated: /p\nVersion: 2"
        # What was proposed for a version that has gone meanwhile is not written over the new one.
        await users.run("u", "wiki_write", path="/p", content="three", expected_version=2)
        key = users.last
        await users.done("u", "wiki_insert", path="/p", insert_line=1, insert_text="x", expected_version=2)
        await engine.decide(key, approve=True, by="alice", user_id="u")
        executed = await resumed(engine, key)
        assert isinstance(executed, Executed)
        assert executed.status == "error"
        await proved(engine)


async def test_a_row_of_code_is_its_owners(journal_url: str) -> None:
    """Where rows are not stored there are no shares: who is not the owner reads, unless everyone writes."""
    for owner, config, allowed in (
        ("u", {}, {"u"}),
        (None, {}, {None}),
        (None, {"everyone_writes": True}, {"u", None}),
    ):
        row = ToolRow(id=f"{owner}{len(config)}", name="wiki", user_id=owner, config=config)
        async with storing(journal_url, rows=(row,)) as engine:
            users = Users(engine)
            for user in ("u", None):
                outcome = await users.run(user, "wiki_create", path=f"/{user}", content="")
                wrote = isinstance(outcome, Executed) and outcome.status == "completed"
                assert wrote == (user in allowed), (owner, config, user)


async def test_no_action_of_one_owner_meets_anothers_pages(database_url: str) -> None:
    """Generated over every action, on rows of the same id and wikis of the same name."""
    paths = {"old_path": "/secret/p", "new_path": "/secret/q", "path": "/secret/p"}
    arguments = {**paths, "text": "canary", "content": "x", "old_str": "canary", "new_str": "x", "insert_text": "x"}
    async with opened(database_url) as store:
        for owner in ("ada", None):
            run = runner(store, owner, owner=owner, wiki="team")
            await run("wiki_create", path="/secret/p", content="canary [[secret/q]]", title="canary")
        before = await everything(store)
        nothing = ("not found", "no version", "(empty)", "links to no page", "No pages found", "Page created")
        for action in wiki_actions():
            stranger = f"bob {action['name']}"
            run = runner(store, stranger, owner=stranger, wiki="team")
            given = {name: arguments.get(name, value) for name, value in arguments_for(action).items()}
            result = await run(action["name"], **given)
            said = result if isinstance(result, str) else failure(result)
            assert any(phrase in said for phrase in nothing), said
            assert "canary" not in said, action["name"]
            await run("wiki_delete", path="/secret/p")
            assert [[line for line in rows if "ubob" not in line] for rows in await everything(store)] == before
        assert await links_that_are_wrong(store) == []
