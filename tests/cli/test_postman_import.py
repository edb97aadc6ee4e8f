"""A Postman collection becomes a row from a shell; no secret in it, or in its environment, is printed or kept clear."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from tests.cli.command import Called, check_refused
from tests.cli.configured import CANARY, Commands, prepared
from tests.engine.api.importing.collections import collection, request

__all__ = ()

COLLECTION = collection(
    {
        "name": "Docks",
        "item": [
            request("{{base}}/docks/:id", name="Show", header=[{"key": "X-Api-Key", "value": "{{door}}"}]),
            request("{{base}}/docks", "POST", "Open", body={"mode": "raw", "raw": '{"ship": "{{ship}}"}'}),
            request("{{base}}/docks", "BREW", "Brew"),
        ],
    },
    auth={"type": "bearer", "bearer": [{"key": "token", "value": f"{CANARY}-1"}]},
)
ENVIRONMENT = {
    "values": [
        {"key": "base", "value": "https://docks.example/v1"},
        {"key": "door", "value": f"{CANARY}-2", "type": "secret"},
    ]
}


@pytest.fixture
def commands(called: Called, tmp_path: Path) -> Commands:
    (tmp_path / "docks.json").write_text(json.dumps(COLLECTION))
    (tmp_path / "local.json").write_text(json.dumps(ENVIRONMENT))
    return prepared(called, f"sqlite:///{tmp_path}/journal.db", tmp_path)


def test_a_collection_and_its_environment_become_a_row(commands: Commands, tmp_path: Path) -> None:
    files = ("--openapi", "docks.json", "--environment", "local.json")
    ended = [commands.done("tools", "add", "api_tool", *files, "--id", "docks")]
    (row,) = ended[0].lines
    assert row["label"] == "Harbour"
    assert [each["operation"] for each in row["skipped"]] == ["BREW Docks / Brew"]
    assert "BREW Docks / Brew is left out" in ended[0].err
    dry = ("tools", "test", "docks", "--dry-run", "--action", "Docks_Show", "--arguments", '{"id": "4"}')
    ended.append(commands.done(*dry))
    (sent,) = ended[1].lines
    assert (sent["method"], sent["url"]) == ("GET", "https://docks.example/v1/docks/4")
    assert {name: text for name, text in sent["headers"] if text.endswith("***")} == {
        "Authorization": "Bearer ***",
        "X-Api-Key": "***",
    }
    ended.append(commands.done("tools", "show", "docks"))
    (shown,) = ended[2].lines
    assert shown["config"]["actions"]["Docks_Open"]["require_approval"] is True
    assert CANARY not in "".join(each.out + each.err for each in ended)
    with sqlite3.connect(tmp_path / "journal.db") as database:
        assert CANARY not in "".join(database.iterdump())


def test_what_cannot_be_imported_is_said(commands: Commands, tmp_path: Path) -> None:
    old = {"id": "x", "name": "old", "order": [], "requests": []}
    (tmp_path / "old.json").write_text(json.dumps(old))
    (tmp_path / "openapi.json").write_text('{"openapi": "3.1.0"}')
    add = ("tools", "add", "api_tool")
    check_refused(commands(*add, "--openapi", "old.json"), 2, "export it as Collection v2.1")
    check_refused(commands(*add, "--openapi", "docks.json"), 2, '"base" without a value')
    check_refused(commands(*add, "--openapi", "docks.json", "--environment", "docks.json"), 2, "environment")
    check_refused(commands(*add, "--openapi", "openapi.json", "--environment", "local.json"), 2, "no Postman")
    check_refused(commands(*add, "--environment", "local.json"), 2, "--openapi")
    check_refused(commands("tools", "add", "weather", "--environment", "local.json"), 2, "api_tool")
