"""Names keep meaning what they meant within a conversation."""

from __future__ import annotations

from typing import Any

import pytest

from engine import CallContext, Engine, Tool, ToolCall, ToolRow
from engine.client_tools import resolve_client_tools
from engine.remembered import Remembered, settled_names, still_there
from engine.schemas import prepare
from engine.toolset import Member, Toolset
from events import Executed, Failed, Proposed
from tests.engine.actions_of import PlainTool, actions_of
from tests.engine.staging import events_of

Key = tuple[str, str]


def toolset(*rows: str, action: str = "lookup") -> Toolset:
    """Return a toolset of rows that all have one action; a row's tool is named after its first letter."""
    return Toolset(
        tuple(
            Member.of(ToolRow(id=row, name=row[0]), PlainTool, actions_of(action, row=row, name=row[0])) for row in rows
        )
    )


def known(**targets: str) -> Remembered:
    return Remembered({name: (row, "lookup") for name, row in targets.items()})


def test_behaviour_016_only_this_toolsets_names_resolve_and_what_the_conversation_resolved_before() -> None:
    assert dict(toolset("a1").names()) == {"lookup": ("a1", "lookup")}
    both = toolset("a1", "b1")
    assert dict(both.names()) == {"a_lookup": ("a1", "lookup"), "b_lookup": ("b1", "lookup")}
    remembered = known(lookup="a1", c_lookup="c1")
    assert dict(both.names(remembered=remembered)) == {
        "lookup": ("a1", "lookup"),
        "a_lookup": ("a1", "lookup"),
        "b_lookup": ("b1", "lookup"),
    }
    # What was prepared goes first; what was called before goes on leading to where it led.
    prepared = both.prepared("openai")
    assert dict(both.names(prepared, remembered)) == {"lookup": ("a1", "lookup"), **prepared.names}


def test_case_schema_02_an_action_keeps_the_name_it_was_called_by() -> None:
    assert list(toolset("s1", "t2").prepared("openai").names) == ["s_lookup", "t_lookup"]
    alone = toolset("t2")
    assert list(alone.prepared("openai").names) == ["lookup"]
    assert alone.prepared("openai", remembered=known(t_lookup="t2")).names == {"t_lookup": ("t2", "lookup")}
    # Its own name leads to it too: nobody else could be meant.
    assert alone.names(remembered=known(t_lookup="t2"))["lookup"] == ("t2", "lookup")


@pytest.mark.parametrize("family", ["openai", "openai.responses", "anthropic", "google", "mcp"])
def test_case_schema_02_a_name_never_comes_to_mean_another_action(family: str) -> None:
    first = toolset("m1", "m2").prepared(family).names
    assert first == {"m_lookup": ("m1", "lookup"), "m_lookup_1": ("m2", "lookup")}
    remembered = Remembered(first)
    # Without the first row, numbers would move up by one.
    later = toolset("m2", "m3")
    assert later.prepared(family).names == {"m_lookup": ("m2", "lookup"), "m_lookup_1": ("m3", "lookup")}
    kept = later.prepared(family, remembered=remembered).names
    assert kept == {"m_lookup_1": ("m2", "lookup"), "m_lookup_2": ("m3", "lookup")}
    assert "m_lookup" not in later.names(remembered=remembered)
    # And back again.
    assert toolset("m1", "m2", "m3").prepared(family, remembered=remembered).names.items() >= first.items()


def test_what_was_prepared_is_used_again_where_the_conversation_changes_nothing() -> None:
    both = toolset("a1", "b1")
    plain = both.prepared("openai")
    assert both.prepared("openai", remembered=known(a_lookup="a1", gone="x1")) is plain
    moved = both.prepared("openai", remembered=known(lookup="a1"))
    assert moved is not plain
    assert both.prepared("openai", remembered=known(lookup="a1")) is moved
    assert both.prepared("openai", strict=True) is not plain


def test_a_clients_tool_is_known_by_its_name_and_not_by_its_place() -> None:
    def clients(*names: str) -> Toolset:
        definitions: list[dict[str, Any]] = [{"name": name} for name in names]
        return Toolset(tuple(Member.of(row, None, (action,)) for row, action in resolve_client_tools(definitions)))

    remembered = Remembered({"weather": ("ct0", "weather"), "time": ("ct1", "time")})
    turned = clients("time", "weather")
    assert turned.prepared("openai", remembered=remembered) is turned.prepared("openai")
    assert turned.names(remembered=remembered)["weather"] == ("ct1", "weather")
    only = clients("time")
    assert "weather" not in only.names(remembered=remembered)


def test_names_spelt_out_by_id_go_on_leading_but_are_never_advertised() -> None:
    alone = toolset("7")
    remembered = known(lookup_7="7")
    assert alone.prepared("openai", remembered=remembered) is alone.prepared("openai")
    assert alone.names(remembered=remembered)["lookup_7"] == ("7", "lookup")


def test_of_several_names_of_one_action_the_last_is_kept_and_none_given_away() -> None:
    actions = actions_of("lookup", row="s2", name="s")
    plain = prepare(actions, "openai").names
    leading = still_there(Remembered({"a": ("s2", "lookup"), "b": ("s2", "lookup")}), actions)
    assert settled_names(leading, plain) == {"b": ("s2", "lookup"), "a": None}
    own = still_there(Remembered({"lookup": ("s2", "lookup"), "b": ("s2", "lookup")}), actions)
    assert settled_names(own, plain) == {}


class Registry(Tool):
    """A tool that says which row it is."""

    name = "s"

    def get_actions_metadata(self) -> Any:
        properties = {"q": {"type": "string"}, "n": {"type": "integer"}}
        return [{"name": "lookup", "parameters": {"type": "object", "properties": properties}}]

    def get_config_requirements(self) -> dict[str, Any]:
        return {}

    def execute_action(self, action_name: str, /, **kwargs: Any) -> Any:
        return {"row": self.scope.tool_id, **kwargs}


class Mirror(Registry):
    """The same under another name."""

    name = "t"


ROWS = [ToolRow(id="s1", name="s"), ToolRow(id="s2", name="t"), ToolRow(id="s3", name="t")]


def context(message: str, *tool_ids: str, conversation: str | None = "c", user: str = "u") -> CallContext:
    return CallContext(user_id=user, message_id=message, conversation_id=conversation, tool_ids=tool_ids)


async def row_that_ran(engine: Engine, name: str, of: CallContext) -> Any:
    outcome = (await events_of(engine, ToolCall(id=f"{of.message_id}.{name}", name=name), of))[-1]
    return outcome.result["row"] if isinstance(outcome, Executed) else outcome


@pytest.mark.anyio
async def test_case_schema_02_over_a_whole_conversation(database_url: str) -> None:
    async with Engine.open(database_url, rows=ROWS, tools=[Registry, Mirror]) as engine:
        first = await engine.prepare_tools_for_llm(context("m1", "s1", "s2"))
        assert first.names == {"s_lookup": ("s1", "lookup"), "t_lookup": ("s2", "lookup")}
        assert await row_that_ran(engine, "t_lookup", context("m1", "s1", "s2")) == "s2"
    # After a restart, from the log.
    async with Engine.open(database_url, rows=ROWS, tools=[Registry, Mirror]) as engine:
        second = await engine.prepare_tools_for_llm(context("m2", "s2"))
        assert second.names == {"t_lookup": ("s2", "lookup")}
        assert await row_that_ran(engine, "t_lookup", context("m2", "s2")) == "s2"
        third = context("m3", "s3", "s2")
        assert (await engine.prepare_tools_for_llm(third)).names["t_lookup"] == ("s2", "lookup")
        assert await row_that_ran(engine, "t_lookup", third) == "s2"
        gone = await row_that_ran(engine, "t_lookup", context("m4", "s3", "s1"))
        assert isinstance(gone, Failed)
        assert gone.kind == "unknown_tool"
        # Other conversations, and other tenants' conversations of the same id, have their own names.
        for other in (context("m5", "s3", "s2", conversation="d"), context("m5", "s3", "s2", user="v")):
            assert await row_that_ran(engine, "t_lookup", other) == "s3"


@pytest.mark.anyio
async def test_a_changed_toolset_within_one_turn_is_noticed() -> None:
    async with Engine.open("sqlite://", rows=ROWS, tools=[Registry, Mirror]) as engine:
        assert await row_that_ran(engine, "lookup", context("m1", "s2")) == "s2"
        assert await row_that_ran(engine, "lookup", context("m1", "s2", "s3")) == "s2"


@pytest.mark.anyio
async def test_case_parse_13_a_wrong_name_is_told_the_nearest_and_at_last_to_stop(
    database_url: str,
) -> None:
    async def told(engine: Engine, number: int, of: CallContext, name: str = "lookpu") -> str:
        outcome = (await events_of(engine, ToolCall(id=f"c{number}", name=name, arguments="{}"), of))[-1]
        assert isinstance(outcome, Failed)
        assert outcome.kind == "unknown_tool"
        assert len(outcome.message) < 1000
        assert "Callable tools: lookup" in outcome.message
        return outcome.message

    async with Engine.open(database_url, rows=ROWS, tools=[Registry, Mirror]) as engine:
        texts = [await told(engine, number, context(f"m{number}", "s1")) for number in range(2)]
        assert all('The nearest name is "lookup".' in text and "stop calling" not in text for text in texts)
    async with Engine.open(database_url, rows=ROWS, tools=[Registry, Mirror]) as engine:
        assert "called 3 times in vain: stop calling it" in await told(engine, 3, context("m3", "s1"))
        assert "called 4 times in vain: stop calling it" in await told(engine, 4, context("m4", "s1"))
        assert "stop calling" not in await told(engine, 5, context("m5", "s1"), "look-up")
        assert "stop calling" not in await told(engine, 6, context("m6", "s1", conversation="d"))
        assert "stop calling" not in await told(engine, 7, context("m7", "s1", user="v"))
        # Without a conversation, within the turn.
        turn = context("m8", "s1", conversation=None)
        assert ["stop" in await told(engine, number, turn) for number in range(10, 13)] == [False, False, True]


@pytest.mark.anyio
async def test_behaviour_082_arguments_problems_are_never_throttled() -> None:
    async with Engine.open("sqlite://", rows=ROWS, tools=[Registry, Mirror]) as engine:
        for number in range(4):
            call = ToolCall(id=f"c{number}", name="lookup", arguments="{not json")
            outcome = (await events_of(engine, call, context(f"m{number}", "s1")))[-1]
            assert isinstance(outcome, Failed)
            assert outcome.kind == "invalid_arguments"
            assert "stop" not in outcome.message


@pytest.mark.anyio
async def test_what_was_mended_is_journalled_mended_with_its_text_and_a_note(database_url: str) -> None:
    async with Engine.open(database_url, rows=ROWS, tools=[Registry, Mirror]) as engine:
        call = ToolCall(id="c1", name="lookup", arguments='{"q":"x",}')
        proposed, executed = await events_of(engine, call, context("m1", "s1"))
        assert isinstance(proposed, Proposed)
        assert (proposed.arguments, proposed.raw) == ({"q": "x"}, '{"q":"x",}')
        assert proposed.note == "commas before a closing bracket were left out"
        assert isinstance(executed, Executed)
        assert executed.result == {"row": "s1", "q": "x"}
        # The same again, and the same said properly: one and the same call.
        for arguments in (call.arguments, '{"q":"x"}'):
            again = ToolCall(id="c1", name="lookup", arguments=arguments)
            assert await events_of(engine, again, context("m1", "s1")) == [proposed, executed]


@pytest.mark.anyio
async def test_a_call_that_was_cut_off_never_runs() -> None:
    async with Engine.open("sqlite://", rows=ROWS, tools=[Registry, Mirror]) as engine:
        for number, arguments in enumerate(["", '{"q":"x"}', None]):
            call = ToolCall(id=f"c{number}", name="lookup", arguments=arguments, cut_off=True)
            proposed, failed = await events_of(engine, call, context("m1", "s1"))
            assert isinstance(proposed, Proposed)
            assert (proposed.arguments, proposed.raw) == ({}, arguments or "")
            assert isinstance(failed, Failed)
            assert failed.kind == "invalid_arguments"


@pytest.mark.anyio
async def test_nulls_of_a_strict_function_are_left_out_and_noted() -> None:
    async with Engine.open("sqlite://", rows=ROWS, tools=[Registry, Mirror]) as engine:
        of = context("m1", "s1")
        strict = await engine.prepare_tools_for_llm(of, strict=True)
        call = ToolCall(id="c1", name="lookup", arguments='{"q":"x","n":null}')
        proposed, executed = await events_of(engine, call, of, prepared=strict)
        assert isinstance(proposed, Proposed)
        assert isinstance(executed, Executed)
        assert (proposed.arguments, proposed.raw) == ({"q": "x"}, '{"q":"x","n":null}')
        assert proposed.note is not None
        assert executed.result == {"row": "s1", "q": "x"}
        loose = await engine.prepare_tools_for_llm(of)
        refused = (
            await events_of(engine, ToolCall(id="c2", name="lookup", arguments='{"n":null}'), of, prepared=loose)
        )[-1]
        assert isinstance(refused, Failed)
        assert '"n"' in refused.message
