"""What a model is told when its call cannot be run."""

from __future__ import annotations

import time

import pytest

from engine.actions import resolve_actions
from engine.refusals import arguments_text, nearest, quoted, refusal_text
from engine.rows import ToolRow
from engine.schemas import prepare
from tests.engine.actions_of import ConfiguredTool, actions_of


def test_behaviour_086_an_unknown_name_is_told_what_can_be_called() -> None:
    text = refusal_text("note_view", ["search", "fetch"])
    assert text.startswith('There is no tool named "note_view"')
    assert text.endswith("fetch, search")


@pytest.mark.parametrize("names", [[], ["note_view"]])
def test_behaviour_088_an_empty_list_says_so_and_never_the_refused_name(names: list[str]) -> None:
    text = refusal_text("note_view", names)
    assert text.endswith("(none)")
    assert text.count("note_view") == 1


def test_behaviour_089_thirty_names_in_sorted_order_and_a_count() -> None:
    names = [f"tool_{number:03}" for number in range(150)]
    text = refusal_text("unknown", reversed(names))
    assert ", ".join(names[:30]) + " and 120 more" in text
    assert names[30] not in text
    assert len(text) < 1000


@pytest.mark.parametrize("name", ["u", "u" * 5000, "\ud800\x00" * 500, "é\n" * 500, ""])
def test_behaviour_089_long_names_are_counted_where_they_do_not_fit(name: str) -> None:
    names = [f"{number:03}{'n' * 61}" for number in range(150)]
    for text in (refusal_text(name, names), arguments_text(name, "p" * 9000, names)):
        assert len(text) < 1000
        assert text.isprintable()
        shown = sum(other in text for other in names)
        assert shown > 0
        assert f" and {150 - shown} more" in text


def test_behaviour_082_an_arguments_problem_blames_the_arguments_and_lists_names() -> None:
    text = arguments_text("act", 'The arguments of "act" are not valid JSON: x.', ["act", "other"])
    assert "not valid JSON" in text
    assert "exists" in text
    assert "no tool named" not in text
    assert text.endswith("act, other")


def test_a_nameless_call_is_told_so() -> None:
    assert refusal_text("", ["a"]).startswith("The call names no tool.")


def test_made_up_names_stay_within_one_line() -> None:
    assert quoted("a b") == '"a b"'
    assert quoted("a\nb") == '"a\\nb"'
    assert len(quoted("x" * 1000)) < 110


def test_behaviour_090_091_only_what_is_offered_is_listed_by_its_advertised_name() -> None:
    api = ToolRow(id="3", name="api_tool", config={"actions": {"fetch_invoice": {"url": "https://x.test"}}})
    rows = (
        *actions_of("run_code", row="1", name="code_executor"),
        *actions_of({"name": "off", "active": False}, row="2", name="x"),
        *resolve_actions(api, ConfiguredTool, []),
    )
    assert refusal_text("nothing", prepare(rows, "openai").names).endswith("Callable tools: fetch_invoice, run_code")
    clashing = (*rows, *actions_of("run_code", row="4", name="other"))
    text = refusal_text("nothing", prepare(clashing, "openai").names)
    assert text.endswith("Callable tools: code_executor_run_code, fetch_invoice, other_run_code")


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("wiegh", "weigh"),
        ("Weigh", "weigh"),
        ("functions.weigh", "weigh"),
        ("weigh ", "weigh"),
        ("weigh-all", "weigh_all"),
        ("purge", None),
        ("multi_tool_use.parallel", None),
        ("", None),
        ("!!!", None),
    ],
)
def test_case_parse_13_a_near_miss_is_named_first_and_never_called(name: str, near: str | None) -> None:
    names = ["purge_bay", "weigh", "weigh_all"]
    assert nearest(name, names) == near
    text = refusal_text(name, names)
    assert text.endswith("Callable tools: purge_bay, weigh, weigh_all")
    assert (f'The nearest name is "{near}". Callable' in text) == (near is not None)
    assert "It was not run." in text


def test_case_parse_13_from_the_third_time_on_the_model_is_told_to_stop() -> None:
    assert "stop" not in refusal_text("wiegh", ["weigh"], times=2)
    assert "called 3 times in vain: stop calling it" in refusal_text("wiegh", ["weigh"], times=3)
    assert len(refusal_text("x" * 5000, ["y" * 64 + str(n) for n in range(99)], times=3)) < 1000


def test_a_hint_takes_little_time_among_many_names() -> None:
    names = sorted(f"{word}_{number}" for number in range(5000) for word in ("fetch_page", "list_items"))
    started = time.thread_time()
    nearest("fetch_pgae_" * 9, names)
    assert time.thread_time() - started < 0.5
