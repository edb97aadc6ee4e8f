"""Instances: who shares one, what a failure says, and what it never says."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from engine.contract import Scope, Tool, ToolContext
from engine.defaults import INTERNAL_ID, default_id, default_rows, internal_row
from engine.discovery import ToolManager
from engine.loading import Instances, LoadFailure, actions_metadata, takes_context
from engine.rows import ToolRow
from events.errors import Refused

pytestmark = pytest.mark.anyio


class Plain(Tool):
    name = "plain"
    made = 0

    def __init__(self, config: dict[str, Any], scope: Scope) -> None:
        super().__init__(config, scope)
        type(self).made += 1

    def execute_action(self, action_name: str, /, **kwargs: Any) -> Any:
        return action_name

    def get_actions_metadata(self) -> Any:
        return [{"name": "act"}]

    def get_config_requirements(self) -> dict[str, Any]:
        return {}


class Fresh(Plain):
    cacheable = False


class Personal(Plain):
    user_scoped = True


class Picky(Plain):
    def __init__(self, config: dict[str, Any], scope: Scope) -> None:
        super().__init__(config, scope)
        raise ConnectionError(f"cannot reach {config['host']} with {config['api_key']} / {config['auth']['pin']}")


class Contextual(Plain):
    async def execute_action(  # type: ignore[override]
        self, action_name: str, context: ToolContext, /, **kwargs: Any
    ) -> Any:
        return context.call_id


def traced(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


class Wrapped(Plain):
    @traced
    async def execute_action(self, action_name: str, context: ToolContext, /, **kwargs: Any) -> Any:
        return context.call_id


class NamedContext(Plain):
    def execute_action(self, action_name: str, /, context: str = "", **kwargs: Any) -> Any:
        return context


@pytest.fixture(autouse=True)
def nothing_made() -> None:
    for kind in (Plain, Fresh, Personal):
        kind.made = 0


def row(tool_id: str = "t1", version: int = 1, config: dict[str, Any] | None = None) -> ToolRow:
    return ToolRow(id=tool_id, name="plain", user_id="ada", config=config or {}, version=version)


async def test_behaviour_133_one_instance_per_row_and_user() -> None:
    instances = Instances()
    first = await instances.load(Plain, row(), "ada")
    assert await instances.load(Plain, row(), "ada") is first
    assert Plain.made == 1
    others = [
        await instances.load(Plain, row(), "bob"),
        await instances.load(Plain, row(), None),
        await instances.load(Plain, row("t2"), "ada"),
        await instances.load(Plain, row(version=2), "ada"),
    ]
    assert len({id(each) for each in (first, *others)}) == 5
    assert (first.scope.user_id, first.scope.owner, first.scope.tool_id) == ("ada", "ada", "t1")


async def test_behaviour_133_what_is_not_cacheable_is_made_every_time() -> None:
    instances = Instances()
    assert await instances.load(Fresh, row(), "ada") is not await instances.load(Fresh, row(), "ada")
    assert Fresh.made == 2


async def test_the_one_used_longest_ago_goes_first() -> None:
    instances = Instances(kept=2)
    first = await instances.load(Plain, row("t1"), None)
    second = await instances.load(Plain, row("t2"), None)
    await instances.load(Plain, row("t1"), None)
    await instances.load(Plain, row("t3"), None)
    assert await instances.load(Plain, row("t1"), None) is first
    assert await instances.load(Plain, row("t2"), None) is not second
    assert repr(instances) == "<Instances 2 kept, at most 2>"


async def test_a_tool_that_keeps_things_per_user_needs_a_user() -> None:
    with pytest.raises(LoadFailure, match="has no user"):
        await Instances().load(Personal, row(), None)
    assert Personal.made == 0
    assert await Instances().load(Personal, row(), "ada")


async def test_a_failing_constructor_says_why_and_no_secret() -> None:
    config = {"host": "db", "api_key": "k-123", "auth": {"pin": "4711"}, "note": "nothing-to-see"}
    with pytest.raises(LoadFailure) as caught:
        await Instances().load(Picky, row(config=config), "ada")
    assert str(caught.value) == (
        "tool 'plain' (row t1) could not be loaded: ConnectionError: cannot reach db with *** / ***"
    )
    assert isinstance(caught.value, Refused)
    with pytest.raises(LoadFailure):
        await Instances().load(Picky, row(config=config), "ada")


class Unspeakable(Exception):
    """An error that cannot say what it is."""

    def __str__(self) -> str:
        raise ValueError("no words")


class Broken(Plain):
    def __init__(self, config: dict[str, Any], scope: Scope) -> None:
        raise Unspeakable


async def test_a_failing_constructor_whose_error_has_no_words_is_a_failure_too() -> None:
    with pytest.raises(LoadFailure, match=r"could not be loaded: Unspeakable$"):
        await Instances().load(Broken, row(), "ada")


@pytest.mark.parametrize(
    ("tool", "wanted"), [(Plain, False), (Contextual, True), (Wrapped, True), (NamedContext, False)]
)
def test_the_context_is_wanted_by_a_second_positional_only_parameter(tool: type[Tool], wanted: bool) -> None:
    assert takes_context(tool) is wanted


async def test_actions_are_asked_of_classes_and_instances_sync_and_async() -> None:
    class Remote(Plain):
        async def get_actions_metadata(self) -> Any:
            return [{"name": self.config.get("prefix", "") + "far"}]

    assert await actions_metadata(Plain) == [{"name": "act"}]
    assert await actions_metadata(Remote) == [{"name": "far"}]
    scope = Scope(user_id=None, owner=None, tool_id="t1")
    assert await actions_metadata(Remote({"prefix": "very_"}, scope)) == [{"name": "very_far"}]


@pytest.mark.parametrize("answer", [None, {"name": "act"}, ["act"], [{"description": "nameless"}]])
async def test_metadata_of_another_shape_is_a_failure(answer: Any) -> None:
    class Odd(Plain):
        def get_actions_metadata(self) -> Any:
            return answer

    with pytest.raises(LoadFailure, match="Odd must return a list"):
        await actions_metadata(Odd)


async def test_a_tool_that_cannot_say_its_actions_is_a_failure_without_secrets() -> None:
    class Down(Plain):
        def get_actions_metadata(self) -> Any:
            raise ConnectionError(f"refused with {self.config.get('token')}")

    tool = Down({"token": "t-secret"}, Scope(user_id=None, owner=None, tool_id="t1"))
    with pytest.raises(LoadFailure, match=r"ConnectionError: refused with \*\*\*$"):
        await actions_metadata(tool)


def test_default_tools_have_rows_with_the_same_ids_everywhere() -> None:
    rows = {each.name: each for each in default_rows(ToolManager())}
    assert set(rows) == {"memory", "read_webpage"}
    assert rows["read_webpage"].id == "81f7689e-477f-5023-a281-528b4071c638"
    assert rows["read_webpage"].id == default_id("read_webpage")
    assert rows["read_webpage"].synthesised
    assert rows["read_webpage"].user_id is None


def test_an_internal_tools_row_has_the_sentinel_id() -> None:
    assert internal_row("think") == ToolRow(id=INTERNAL_ID, name="think", synthesised=True)


class Rooted(Plain):
    name = "rooted"
    default_on = True
    needs_row = True


class Keyed(Plain):
    name = "keyed"
    default_on = True

    def get_config_requirements(self) -> dict[str, Any]:
        return {"api_key": {"type": "string", "required": True}, "note": {"required": False}}


class Fragile(Plain):
    name = "fragile"
    default_on = True

    def __init__(self, config: dict[str, Any], scope: Scope) -> None:
        super().__init__(config, scope)
        config["url"]


@pytest.mark.parametrize(
    ("tool", "said"),
    [(Rooted, "needs a stored row"), (Keyed, r"must be configured \(api_key\)"), (Fragile, "fails without config")],
)
def test_a_default_that_cannot_be_one_is_refused_at_start(tool: type[Tool], said: str) -> None:
    with pytest.raises(Refused, match=f"tool '{tool.name}' cannot be on by default: .*{said}"):
        default_rows(ToolManager(extra=(tool,)))


def test_internal_tools_are_no_defaults() -> None:
    class Hidden(Plain):
        name = "hidden"
        default_on = True
        internal = True

    assert [each.name for each in default_rows(ToolManager(extra=(Hidden,)))] == ["memory", "read_webpage"]
