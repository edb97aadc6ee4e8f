"""Who may do what with a stored row: every action of every tool that keeps things, for everyone that there is.

The table says, for each standing towards the row, what becomes of an action that reads and of one that changes.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import msgspec
import pytest

from engine import CallContext, Engine, ToolRow
from engine.loading import actions_metadata
from engine.sharing import Grantee, SharedRole
from events import Executed, Failed
from tests.engine.forecasts import storing
from tests.engine.staging import call, outcome_of, proved
from tests.engine.tools.households import kept
from tests.engine.tools.tenancies import SECRET, TENANCIES, Tenancy

__all__ = ()

pytestmark = pytest.mark.anyio

Outcome: TypeAlias = Literal["done", "refused", "unknown", "nobody"]
"""It works; the tool refuses it; there is no such tool; the tool is not loaded for somebody without an id."""


BOB, ALL = Grantee.user("bob"), Grantee.everyone()


class Standing(msgspec.Struct, frozen=True):
    """Somebody, and how they come to a row.

    :ivar user: ``ada`` is its owner
    :ivar role: what those to whom the row is shared may do with it
    :ivar shared: to whom that is
    :ivar accepted: whether the user has accepted it
    :ivar agent: an agent's list answers for it
    :ivar listed: the turn names the row
    """

    user: str | None
    role: SharedRole | None = None
    shared: Grantee = Grantee.team("ops")
    accepted: bool = False
    agent: bool = False
    listed: bool = False
    headless: bool = False


STANDINGS: Final[dict[str, tuple[Standing, tuple[Outcome, Outcome], tuple[Outcome, Outcome]]]] = {
    # standing, then what each keeps for themselves: reads, changes; then what is the owner's: reads, changes
    "owner": (Standing("ada"), ("done", "done"), ("done", "done")),
    "owner, headless": (Standing("ada", headless=True), ("done", "done"), ("done", "done")),
    "owner's agent": (Standing("ada", agent=True, listed=True), ("done", "done"), ("done", "done")),
    "other user": (Standing("bob"), ("unknown", "unknown"), ("unknown", "unknown")),
    "other user, headless": (Standing("bob", headless=True), ("unknown", "unknown"), ("unknown", "unknown")),
    "other user who names the row": (Standing("bob", listed=True), ("unknown", "unknown"), ("unknown", "unknown")),
    "nobody named": (Standing(None), ("unknown", "unknown"), ("unknown", "unknown")),
    "viewer by a team": (Standing("bob", "viewer"), ("done", "done"), ("done", "refused")),
    "viewer by a team, headless": (Standing("bob", "viewer", headless=True), ("done", "done"), ("done", "refused")),
    "editor by a team": (Standing("bob", "editor"), ("done", "done"), ("done", "done")),
    "viewer who has not accepted": (Standing("bob", "viewer", BOB), ("unknown", "unknown"), ("unknown", "unknown")),
    "viewer who has accepted": (Standing("bob", "viewer", BOB, True), ("done", "done"), ("done", "refused")),
    "editor who has accepted": (Standing("bob", "editor", BOB, True), ("done", "done"), ("done", "done")),
    "one of everyone": (Standing("bob", "viewer", ALL), ("unknown", "unknown"), ("unknown", "unknown")),
    "one of everyone who has accepted": (Standing("bob", "viewer", ALL, True), ("done", "done"), ("done", "refused")),
    "user of an agent": (Standing("bob", agent=True, listed=True), ("done", "done"), ("done", "refused")),
    "user of an agent, headless": (
        Standing("bob", agent=True, listed=True, headless=True),
        ("done", "done"),
        ("done", "refused"),
    ),
    "nobody named, of an agent": (
        Standing(None, agent=True, listed=True),
        ("nobody", "nobody"),
        ("done", "refused"),
    ),
    "agent whose list lacks the row": (Standing("bob", agent=True), ("unknown", "unknown"), ("unknown", "unknown")),
}


@pytest.mark.parametrize("tenancy", TENANCIES, ids=lambda each: each.tool.name)
async def test_who_may_do_what_with_a_row(journal_url: str, tenancy: Tenancy) -> None:
    entries = {entry["name"]: entry for entry in await actions_metadata(tenancy.tool)}
    async with storing(journal_url) as engine:
        await engine.rows.teams.join("ops", "ada")
        await engine.rows.teams.join("ops", "bob")
        if tenancy.tool.default_on:
            # A default row is everyone's, and another than the one in question.
            for user in ("ada", "bob", None):
                await engine.rows.built_ins.set(tenancy.tool.name, "off", user_id=user)
        for place, (name, (standing, scoped, owned)) in enumerate(STANDINGS.items()):
            row_id = f"row{place}"
            await engine.rows.add(ToolRow(id=row_id, name=tenancy.tool.name), user_id="ada")
            if standing.role is not None:
                await engine.rows.share(row_id, standing.shared, standing.role, user_id="ada")
            if standing.accepted:
                await engine.rows.offers.accept(row_id, user_id=standing.user)
            caller = Caller(engine, row_id)
            owner = Standing("ada", listed=True)
            for action, arguments in tenancy.seeds:
                assert await caller.outcome(owner, action, arguments) == "done"
                if tenancy.tool.user_scoped and standing.user != "ada":
                    await caller.outcome(standing, action, arguments)
            before = await kept(engine, "ada")
            for action, arguments in tenancy.samples:
                changes = entries[action]["effect"] != "read"
                expected = (scoped if tenancy.tool.user_scoped else owned)[changes]
                assert await caller.outcome(standing, action, arguments) == expected, (name, action)
                if standing.user != "ada" and (tenancy.tool.user_scoped or expected != "done"):
                    assert await kept(engine, "ada") == before, (name, action)
            await engine.rows.remove(row_id, user_id="ada")
        await proved(engine)


class Caller:
    """Calls of one row."""

    def __init__(self, engine: Engine, row_id: str) -> None:
        self._engine = engine
        self._row_id = row_id
        self._count = 0

    async def outcome(self, standing: Standing, action: str, arguments: dict[str, object]) -> Outcome:
        """Make a call and say what became of it; nothing that is not done says what is kept."""
        self._count += 1
        context = CallContext(
            user_id=standing.user,
            message_id=self._row_id,
            agent_id="a1" if standing.agent else None,
            tool_ids=self._listed(standing),
            headless=standing.headless,
        )
        made = await outcome_of(self._engine, call(arguments, name=action, call_id=f"c{self._count}"), context)
        if isinstance(made, Executed) and made.status == "completed":
            return "done"
        assert isinstance(made, Executed | Failed), made
        said = str(made.result if isinstance(made, Executed) else made.message)
        assert SECRET not in said
        if isinstance(made, Failed):
            return "unknown" if made.kind == "unknown_tool" else "nobody"
        assert said.startswith("Error: You may read this wiki, not change it"), (action, said)
        return "refused"

    def _listed(self, standing: Standing) -> tuple[str, ...] | None:
        return (self._row_id,) if standing.listed else () if standing.agent else None
