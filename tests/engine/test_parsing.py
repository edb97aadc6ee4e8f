"""From a model's call to (tool, action, arguments)."""

from __future__ import annotations

import json
import logging
from typing import Any

import msgspec
import pytest

from engine.call import ToolCall
from engine.journalled import journal_form
from engine.parsing import ParsedCall, ToolActionParser
from events.keys import call_digest

ROUTES = {"get_weather": ("ct0", "get_weather"), "search_1": ("t9", "search"), "act": ("t1", "act")}


def parse(name: Any, arguments: Any = None, family: str = "openai") -> ParsedCall:
    return ToolActionParser(family).parse(ToolCall(name=name, arguments=arguments), ROUTES)


def problem_of(arguments: Any, family: str = "openai") -> str:
    parsed = parse("act", arguments, family)
    assert (parsed.tool_id, parsed.action_name, parsed.arguments) == ("t1", "act", {})
    assert parsed.problem is not None
    assert '"act"' in parsed.problem
    assert "\n" not in parsed.problem
    return parsed.problem


def test_behaviour_030_a_routed_call_keeps_unicode_and_nesting() -> None:
    assert parse("get_weather", '{"city":"東京","d":{"n":1}}') == ParsedCall(
        "ct0", "get_weather", "get_weather", {"city": "東京", "d": {"n": 1}}
    )


def test_behaviour_031_routes_go_before_name_splitting() -> None:
    parsed = parse("search_1", "{}")
    assert (parsed.tool_id, parsed.action_name, parsed.warnings) == ("t9", "search", ())


def test_behaviour_032_an_unknown_name_is_split_at_its_last_underscore(caplog: pytest.LogCaptureFixture) -> None:
    parsed = parse("send_email_notification_456", '{"a":1}')
    assert (parsed.tool_id, parsed.action_name, parsed.arguments) == ("456", "send_email_notification", {"a": 1})
    assert caplog.records == []


def test_behaviour_033_invented_names_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    parsed = parse("action_notanumber", "{}")
    assert (parsed.tool_id, parsed.action_name) == ("notanumber", "action")
    nothing = parse("invalidtoolname", '{"a":1}')
    assert (nothing.tool_id, nothing.action_name, nothing.arguments) == (None, None, None)
    assert not nothing.resolved
    assert nothing.raw == '{"a":1}'
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 2
    assert [record.getMessage() for record in caplog.records] == [*parsed.warnings, *nothing.warnings]
    assert "not numeric" in parsed.warnings[0]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("{not json", "line 1, column 2 (character 1)"),
        ('{"a":1}{"b":2}', "line 1, column 8 (character 7)"),
        ('{"a":1,\n "b":}', "line 2, column 6 (character 13)"),
        ('{"path": "/tm', "line 1, column 10 (character 9)"),
        ('{"a":1,,}', "line 1, column 8"),
        ("```json\n{\n```", "line 1, column 1"),
        ("{'a': 1}", "line 1, column 2"),
    ],
)
def test_behaviour_034_malformed_arguments_of_a_routed_name_are_a_problem(text: str, where: str) -> None:
    assert where in problem_of(text)
    assert parse("act", text).raw == text


@pytest.mark.parametrize("family", ["openai", "openai.responses", "anthropic", "google"])
@pytest.mark.parametrize("arguments", ["", "  \n\t", None, b"", b" ", "null", " null "])
def test_behaviour_035_no_arguments_are_an_empty_object(family: str, arguments: Any) -> None:
    assert parse("act", arguments, family) == ParsedCall("t1", "act", "act", {})


@pytest.mark.parametrize(
    ("text", "decoded", "kind"),
    [
        ("[]", [], "an array"),
        ("5", 5, "a number"),
        ("true", True, "a boolean"),
        ('"a string"', "a string", "a string"),
        ('["a","b"]', ["a", "b"], "an array"),
    ],
)
def test_behaviour_036_a_non_object_is_kept_and_flagged(text: str, decoded: Any, kind: str) -> None:
    parsed = parse("act", text)
    assert (parsed.tool_id, parsed.action_name, parsed.arguments) == ("t1", "act", decoded)
    assert parsed.problem is not None
    assert kind in parsed.problem
    assert parsed.raw == text


def test_behaviour_038_google_arguments_come_as_an_object_or_as_its_text() -> None:
    given = {"a": {"b": 1}}
    assert parse("act", given, "google").arguments is given
    assert parse("act", '{"a": {"b": 1}}', "google").arguments == given


def test_behaviour_039_google_arguments_that_are_no_object_are_empty_but_flagged() -> None:
    sent: list[Any] = ["not json", "[]", []]
    for arguments in sent:
        parsed = parse("act", arguments, "google")
        assert parsed.arguments == {}
        assert parsed.problem is not None
    assert parse("act", None, "google").problem is None
    assert parse("act", "null", "google").problem is None


def test_behaviour_040_an_unknown_provider_follows_openai() -> None:
    assert ToolActionParser("somebody").family == "openai"
    assert parse("act", '["a"]', "somebody") == parse("act", '["a"]', "openai")


@pytest.mark.parametrize("name", [None, "", " ", "_", "a_", "_1", "é", "x" * 100_000])
def test_behaviour_041_a_call_without_a_usable_name_is_unresolved(name: Any) -> None:
    parsed = ToolActionParser().parse(ToolCall(name=name), ROUTES)
    assert (parsed.tool_id, parsed.action_name, parsed.arguments) == (None, None, None)
    assert parsed.llm_name == (name or "")
    assert len(parsed.warnings[0]) < 300


def test_behaviour_042_objects_are_taken_as_they_are_and_bytes_decoded() -> None:
    given = {"a": 1}
    assert parse("act", given).arguments is given
    assert parse("act", '{"a":"é"}'.encode()).arguments == {"a": "é"}
    assert parse("act", bytearray(b'{"a":1}')).arguments == {"a": 1}
    assert "byte 6" in problem_of(b'{"a":"\xff"}')


def test_case_parse_01_empty_text_is_no_arguments_and_stays_empty_within() -> None:
    assert parse("act", "").arguments == {}
    assert parse("act", "  \n").arguments == {}
    assert parse("act", {}, "anthropic").arguments == {}
    assert parse("act", '{"a":""}').arguments == {"a": ""}


def test_case_parse_05_strings_that_look_like_json_stay_strings() -> None:
    assert parse("act", r'{"labels":"[\"wet\"]","memo":"[1,2]"}').arguments == {"labels": '["wet"]', "memo": "[1,2]"}


def test_case_parse_06_big_integers_survive() -> None:
    for number in (9007199254740993, 8765432109876543211, 123456789012345678901234567890, -(2**80)):
        parsed = parse("act", f'{{"n":{number}}}')
        assert parsed.arguments == {"n": number}
        assert type(parsed.arguments["n"]) is int
        assert msgspec.json.encode(journal_form(parsed.arguments)) == f'{{"n":{number}}}'.encode()
    assert "digits" in problem_of('{"n":' + "1" * 5000 + "}")


@pytest.mark.parametrize("token", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_case_parse_07_what_is_no_json_number_is_refused_with_its_place(token: str) -> None:
    problem = problem_of('{"note":"NaN 1e999 Infinity",\n "gain":' + token + "}")
    assert "line 2, column 9" in problem
    assert token.lstrip("-") in problem


def test_case_parse_09_pairs_become_one_character_and_halves_are_replaced() -> None:
    assert parse("act", r'{"icon":"\ud83d\udc0c"}').arguments == {"icon": "\U0001f40c"}
    for text, kept in ((r'{"icon":"x\ud9aby"}', "x\ufffdy"), (r'{"icon":"\udc0c\ud83d"}', "\ufffd\ufffd")):
        parsed = parse("act", text)
        assert (parsed.arguments, parsed.problem) == ({"icon": kept}, None)
        assert call_digest("t1", "act", parsed.arguments)
    assert parse("act", '{"icon":"\ud9ab"}').arguments == {"icon": "\ufffd"}
    assert journal_form(parse("act", {"icon": "x\ud9aby"}, "google").arguments) == {"icon": "x\ufffdy"}


def test_case_journal_08_the_same_text_has_one_value_and_one_digest() -> None:
    text = '{"b":1,"aa":{"y":1,"x":2},"n":1e3,"z":-0,"f":1.0,"b":2}'
    first = parse("act", text).arguments
    assert first == {"b": 2, "aa": {"y": 1, "x": 2}, "n": 1000.0, "z": 0, "f": 1.0}
    stored = msgspec.json.decode(msgspec.json.encode(journal_form(first)))
    assert call_digest("t1", "act", stored) == call_digest("t1", "act", first)
    assert call_digest("t1", "act", json.loads(text)) == call_digest("t1", "act", first)
    assert "1e999" in problem_of('{"n":1e999}')


@pytest.mark.parametrize(
    "name",
    ["wiegh", "Weigh", "functions.weigh", "weigh ", "purge", "multi_tool_use.parallel", "", None, "weigh_tool"],
)
def test_case_parse_13_near_misses_never_become_another_tool(name: Any) -> None:
    routes = {"weigh": ("t1", "weigh"), "weigh_all": ("t1", "weigh_all"), "purge_bay": ("t1", "purge_bay")}
    parsed = ToolActionParser().parse(ToolCall(name=name, arguments="{}"), routes)
    assert parsed.tool_id != "t1"
    assert parsed.warnings


def test_deep_nesting_is_a_problem_and_never_an_error() -> None:
    assert "nested" in problem_of('{"a":' * 100_000 + "1" + "}" * 100_000)


def test_the_raw_text_is_kept_where_the_arguments_do_not_tell() -> None:
    assert parse("act", '{"a":1}').raw is None
    assert parse("act", b'{"a":\xff').raw == '{"a":\ufffd'
    assert parse("nowhere", {"a": 1}).raw == '{"a":1}'
    assert parse("nowhere", {"a": object()}).raw is None
    assert parse("act", {1, 2}).problem is not None


def test_parsing_changes_nothing_it_is_given() -> None:
    given = {"a": [1, {"b": "\x00"}]}
    routes = dict(ROUTES)
    ToolActionParser().parse(ToolCall(name="act", arguments=given), routes)
    assert given == {"a": [1, {"b": "\x00"}]}
    assert routes == ROUTES


@pytest.mark.parametrize("size", [200_000, 2_000_000])
def test_long_texts_arrive_whole_and_long_nonsense_is_told_shortly(size: int) -> None:
    text = ('say "hi"\\n\t\N{SNOWMAN}' * (size // 12))[:size]
    for arguments in ({"code": text}, {"code": [text] * 2}):
        assert parse("act", json.dumps(arguments)).arguments == arguments
    cut = parse("act", json.dumps({"code": text})[:-20])
    assert (cut.arguments, cut.raw) == ({}, json.dumps({"code": text})[:-20])
    assert len(cut.problem or "") < 300


def test_nul_and_other_control_characters_arrive_escaped_and_are_refused_raw() -> None:
    assert parse("act", r'{"a":"x\u0000y\u0001"}').arguments == {"a": "x\x00y\x01"}
    assert "control character" in problem_of('{"a":"x\x00y"}')
    assert "control character" in problem_of('{"a":"x\ny"}')


def test_of_a_key_that_comes_twice_the_last_counts_at_any_depth() -> None:
    assert parse("act", '{"a":1,"b":{"c":1,"c":2},"a":3}').arguments == {"a": 3, "b": {"c": 2}}


def test_a_name_that_is_no_text_is_no_name() -> None:
    for name in (7, ["act"], {"a": 1}):
        assert not parse(name, "{}").resolved
