"""Model-visible names."""

from __future__ import annotations

import itertools
import random
import re
import time

import pytest

from engine.actions import Action
from engine.naming import advertise
from engine.schemas import prepare
from tests.engine.actions_of import actions_of

LEGAL = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def routes(*rows: tuple[Action, ...], family: str = "openai") -> dict[str, tuple[str, str]]:
    return prepare([action for row in rows for action in row], family).names


def names(*rows: tuple[Action, ...], family: str = "openai") -> list[str]:
    return list(routes(*rows, family=family))


def test_behaviour_005_a_shared_name_is_prefixed_and_never_bare() -> None:
    found = routes(actions_of("search", row="1", name="brave"), actions_of("search", row="2", name="duckduckgo"))
    assert found == {"brave_search": ("1", "search"), "duckduckgo_search": ("2", "search")}


def test_behaviour_006_rows_of_one_tool_are_numbered_in_toolset_order() -> None:
    rows = [actions_of("search", row=row, name="mcp") for row in ("x", "a", "m")]
    assert routes(*rows) == {
        "mcp_search": ("x", "search"),
        "mcp_search_1": ("a", "search"),
        "mcp_search_2": ("m", "search"),
    }


def test_behaviour_008_each_run_of_illegal_characters_becomes_one_underscore() -> None:
    rows = actions_of("search", row="1", name="My Server: v2"), actions_of("search", row="2", name="brave")
    assert names(*rows) == ["My_Server_v2_search", "brave_search"]


def test_behaviour_009_a_prefix_that_vanishes_leaves_a_number_and_never_the_bare_name() -> None:
    rows = actions_of("search", row="1", name="!!!"), actions_of("search", row="2", name="brave")
    assert routes(*rows) == {"search_1": ("1", "search"), "brave_search": ("2", "search")}


@pytest.mark.parametrize(("length", "kept"), [(64, 64), (65, 64), (76, 64)])
def test_behaviour_011_a_long_unique_name_is_cut_without_a_prefix(length: int, kept: int) -> None:
    action = "abcdefghij" * 8
    assert routes(actions_of(action[:length])) == {action[:kept]: ("t1", action[:length])}


def test_behaviour_012_the_suffix_survives_the_cut() -> None:
    stem = "p" * 64
    found = routes(actions_of(stem + "-first"), actions_of(stem + "-other", row="t2"))
    assert found == {stem: ("t1", stem + "-first"), stem[:62] + "_1": ("t2", stem + "-other")}


def test_behaviour_014_long_tool_names_stay_apart() -> None:
    tool = "server_" + "x" * 60
    action = "search_documents_in_collection"
    found = routes(actions_of(action, row="1", name=tool), actions_of(action, row="2", name=tool + "_b"))
    assert sorted(found.values()) == [("1", action), ("2", action)]
    assert all(LEGAL.fullmatch(name) for name in found)


def test_behaviour_029_a_unique_illegal_name_is_cleaned_and_leads_to_the_action_as_named() -> None:
    assert routes(actions_of("get weather!")) == {"get_weather": ("t1", "get weather!")}


def test_a_suffix_never_takes_a_name_that_a_unique_action_owns() -> None:
    rows = (
        actions_of("search", row="1", name="mcp"),
        actions_of("search", row="2", name="mcp"),
        actions_of("search", row="3", name="mcp"),
        actions_of("mcp_search_1", row="4", name="other"),
        actions_of("mcp search 2", row="5", name="other"),
        actions_of("mcp_search", row="6", name="other"),
    )
    found = routes(*rows)
    assert found["mcp_search_1"] == ("4", "mcp_search_1")
    assert found["mcp_search_2"] == ("5", "mcp search 2")
    assert found["mcp_search"] == ("6", "mcp_search")
    assert len(found) == 6


def test_a_shared_name_stays_out_of_use_even_for_an_action_that_would_clean_to_it() -> None:
    rows = (
        actions_of("search", row="1", name="a"),
        actions_of("search", row="2", name="b"),
        actions_of("search!", row="3"),
    )
    assert routes(*rows) == {"a_search": ("1", "search"), "b_search": ("2", "search"), "search_1": ("3", "search!")}


def test_names_in_which_nothing_is_legal_get_their_tools_name_and_a_number() -> None:
    assert routes(actions_of("検索", "天気", name="search server")) == {
        "search_server_2": ("t1", "検索"),
        "search_server_1": ("t1", "天気"),
    }
    assert names(actions_of("検索", name="検索")) == ["tool_1"]


def test_case_schema_01_over_long_names_stay_apart_in_any_listing_order() -> None:
    listed = [
        "create_maintenance_window_for_conveyor_segment_with_operator_signoff_and_audit",
        "delete_maintenance_window_for_conveyor_segment_with_operator_signoff_and_audit",
        "report_vibration_of_bearing_assembly_on_primary_shaft_per_minute_averaged_v1",
        "report_vibration_of_bearing_assembly_on_primary_shaft_per_minute_averaged_v2",
        "read_the_temperature_probe_mounted_on_inlet_manifold_number_seven_in_kelvin",
        "read_the_temperature_probe_mounted_on_outlet_manifold_number_seven_in_kelvin",
    ]
    expected = routes(actions_of(*listed, name="plant-floor"))
    assert len(expected) == 6
    assert all(LEGAL.fullmatch(name) for name in expected)
    assert {action for _, action in expected.values()} == set(listed)
    for order in itertools.permutations(listed):
        assert routes(actions_of(*order, name="plant-floor")) == expected


def test_case_schema_03_cleaned_names_stay_apart_and_the_legal_one_keeps_its_own() -> None:
    listed = ["crane.move", "crane:move", "crane/move", "crane move", "crane_move"]
    found = routes(actions_of(*listed))
    assert len(found) == 5
    assert all(LEGAL.fullmatch(name) for name in found)
    assert found["crane_move"] == ("t1", "crane_move")
    assert {action for _, action in found.values()} == set(listed)


def test_case_schema_05_google_names_begin_with_a_letter_or_an_underscore() -> None:
    row = actions_of("2fa.verify", "-purge", "9" * 70, "_2fa_verify")
    found = routes(row, family="google")
    assert all(re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}", name) for name in found)
    assert {action for _, action in found.values()} == {"2fa.verify", "-purge", "9" * 70, "_2fa_verify"}
    assert found["_2fa_verify"] == ("t1", "_2fa_verify")
    assert routes(row)["2fa_verify"] == ("t1", "2fa.verify")
    assert routes(row)["-purge"] == ("t1", "-purge")


def test_names_come_in_the_order_of_the_actions() -> None:
    actions = (*actions_of("b", "a", "c d"), *actions_of("a", row="t2", name="other"))
    assert advertise(actions, "openai") == ("b", "test_tool_a", "c_d", "other_a")


def test_rows_that_share_all_their_names_take_linear_time() -> None:
    def seconds(rows: int) -> float:
        actions = [a for row in range(rows) for a in actions_of("search", "get", "list", row=str(row), name="mcp_tool")]
        best = 9.0
        for _ in range(3):
            start = time.perf_counter()
            assert len(set(advertise(actions, "openai"))) == 3 * rows
            best = min(best, time.perf_counter() - start)
        return best

    # Quadratic work would take 64 times as long for 8 times the rows.
    assert seconds(1600) < 30 * seconds(200)


def test_long_names_that_differ_late_take_few_attempts() -> None:
    rng = random.Random(1)
    actions = actions_of(*{"x" * 61 + "".join(rng.choices("abcdefgh", k=6)) for _ in range(2000)})
    assert len(set(advertise(actions, "openai"))) == len(actions)
