"""What a tool says it made."""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from typing import Any

import pytest

from engine.artifacts_of import artifact_id_of, artifacts_of
from engine.contract import Scope, Tool
from events.types import Artifact

pytestmark = pytest.mark.anyio


class Maker(Tool):
    def execute_action(self, action_name: str, /, **kwargs: Any) -> Any:
        return None

    def get_actions_metadata(self) -> Any:
        return []

    def get_config_requirements(self) -> dict[str, Any]:
        return {}


class Naming(Maker):
    def __init__(self, answer: Callable[..., Any]) -> None:
        super().__init__({}, Scope(user_id=None, owner=None, tool_id="t"))
        self.get_artifact_id = answer
        self.get_artifacts = answer


def raising(action_name: str, /, **kwargs: Any) -> Any:
    raise KeyError("no name")


async def slow_id(action_name: str, /, **kwargs: Any) -> Any:
    return f" {action_name}-{kwargs['n']} "


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (lambda action, n: " a1 ", "a1"),
        (slow_id, "make-3"),
        (lambda action, n: 7, "7"),
        (lambda action, n: "", None),
        (lambda action, n: "  ", None),
        (lambda action, n: None, None),
        (lambda action, n: {"id": "a1"}, None),
        (lambda action, n: False, None),
        (lambda action: "wrong signature", None),
        (raising, None),
    ],
)
async def test_behaviour_096_the_artifact_is_named_trimmed_or_not_at_all(
    answer: Callable[..., Any], found: str | None
) -> None:
    assert await artifact_id_of(Naming(answer), "make", {"n": 3}) == found


async def test_behaviour_096_a_tool_without_the_hook_names_nothing() -> None:
    tool = Maker({}, Scope(user_id=None, owner=None, tool_id="t"))
    assert await artifact_id_of(tool, "make", {}) is None
    assert await artifacts_of(tool, "make", {}) == ()


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (
            lambda action: [{"id": " f1 ", "filename": "x", "extra": 1}, {"filename": "y"}, "z"],
            (Artifact(id="f1", filename="x", ref=None),),
        ),
        (lambda action: (Artifact(id=" f2", ref="r"),), (Artifact(id="f2", filename=None, ref="r"),)),
        (lambda action: iter([{"id": 1, "filename": 5}, {"id": None}, {"id": []}]), (Artifact(id="1"),)),
        (lambda action: repeat({"id": "a\0"}), (Artifact(id="a"),) * 1000),
        (lambda action: [], ()),
        (lambda action: None, ()),
        (lambda action: {"id": "f1"}, ()),
        (lambda action: 5, ()),
        (raising, ()),
    ],
)
async def test_behaviour_097_files_without_an_id_are_left_out(
    answer: Callable[..., Any], found: tuple[Artifact, ...]
) -> None:
    assert await artifacts_of(Naming(answer), "make", {}) == found


async def test_behaviour_097_a_listing_that_breaks_off_lists_nothing() -> None:
    def breaking(action_name: str) -> Any:
        yield {"id": "f1"}
        raise OSError("disk gone")

    assert await artifacts_of(Naming(breaking), "make", {}) == ()
