"""``calljournal tools test NAME``: each tool against its stand-in, and what it says it would send."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.cli import standing_in
from engine.cli.example_arguments import example_arguments
from engine.discovery import ToolManager
from tests.cli.command import Called, check_refused
from tests.cli.configured import weather_folder
from tests.stand_ins.stand_in import NAMES

__all__ = ()

SECRET = "AAzq7-Hf2_secretsecretsecret"
SENDING = ("brave", "cryptoprice", "duckduckgo", "ntfy", "postgres", "read_webpage", "telegram")


@pytest.mark.parametrize("name", NAMES)
def test_every_action_of_a_tool_works_with_its_stand_in(name: str, called: Called) -> None:
    ended = called("tools", "test", name)
    assert (ended.code, ended.err) == (0, "")
    assert {(each["problem"], each["outcome"]) for each in ended.lines} == {(None, "completed")}, ended.out
    assert [each["action"] for each in ended.lines if (each["sends"] is not None) != (name in SENDING)] == []
    assert SECRET not in ended.out
    assert "canary-4f1d" not in ended.out


def test_every_tool_of_the_catalogue_that_needs_no_row_has_one() -> None:
    missing = set(ToolManager().load_tools()) - set(NAMES)
    # Their actions are those of their rows, or of the engine itself.
    assert missing <= {"api_tool", "mcp_tool", "read_result", "player", "dice"}


def test_without_stand_ins_it_says_what_would_be_sent_and_sends_nothing(
    called: Called, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standing_in, "_ROOT", standing_in._ROOT / "nowhere")
    tried = {each["action"]: each for each in called("tools", "test", "brave").lines}
    assert set(tried) == {"brave_web_search", "brave_image_search", "brave_news_search"}
    assert {each["outcome"] for each in tried.values()} == {None}
    sends = tried["brave_web_search"]["sends"]
    assert sends.startswith("GET /res/v1/web/search?q=example")
    assert "X-Subscription-Token: ***" in sends
    dry = ("--dry-run", "--action", "brave_web_search", "--arguments", json.dumps({"query": "x" * 500}))
    refused = called("tools", "test", "brave", *dry)
    assert refused.code == 1
    assert "is refused: The arguments of" in called("tools", "test", "--no-json", "brave", *dry).out
    assert "needs approval" in called("tools", "test", "--no-json", "postgres", "--dry-run").out


def test_what_is_neither_row_nor_tool_or_has_no_such_action_is_refused(called: Called, tmp_path: Path) -> None:
    check_refused(called("tools", "test", "brav"), 3, "no journal")
    check_refused(called("tools", "test", "brave", "--action", "x", "--dry-run"), 2, "has no action 'x' (there are: ")
    check_refused(called("tools", "test", "api_tool"), 2, "the actions of its rows")


def test_a_folders_tool_says_what_it_would_be_called_with(called: Called, tmp_path: Path) -> None:
    folder = weather_folder(tmp_path)
    first, second = called("tools", "test", "weather", "--tools", folder).lines
    assert (first["action"], first["arguments"], first["sends"]) == ("forecast", {"city": "example"}, None)
    assert (second["arguments"], second["outcome"]) == ({}, None)


def test_examples_fit_their_schemas() -> None:
    schema = {
        "required": ["a", "b", "c", "d", "e", "f", "g"],
        "properties": {
            "a": {"type": "string", "minLength": 9, "maxLength": 9},
            "b": {"type": "integer", "minimum": 4},
            "c": {"enum": ["x", "y"]},
            "d": {"type": ["array", "null"], "minItems": 2, "items": {"type": "boolean"}},
            "e": {"type": "object", "required": ["k"], "properties": {"k": {"const": 7}}},
            "f": {"type": "string", "format": "uri"},
            "h": {"type": "string"},
        },
    }
    assert example_arguments(schema) == {
        "a": "examplexx",
        "b": 4,
        "c": "x",
        "d": [False, False],
        "e": {"k": 7},
        "f": "https://example.com/",
        "g": "example",
    }
