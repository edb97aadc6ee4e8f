"""Rows kept from a shell: tested, refreshed, shared, and carried out by the other commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import Called, check_refused
from tests.cli.configured import CANARY, Commands, prepared

__all__ = ()

DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "Pets", "version": "1"},
    "servers": [{"url": "https://pets.example/v1"}],
    "components": {"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}},
    "security": [{"key": []}],
    "paths": {
        "/pets/{id}": {
            "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}],
            "get": {"operationId": "getPet"},
            "delete": {"operationId": "deletePet"},
        },
        "/photos": {"servers": [{"url": "https://photos.example"}], "get": {"operationId": "photos"}},
        "/odd": {"post": {"operationId": "odd", "requestBody": {"$ref": "#/nowhere"}}},
    },
}


@pytest.fixture
def commands(called: Called, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    monkeypatch.setenv("KEY", CANARY)
    return with_weather(prepared(called, f"sqlite:///{tmp_path}/journal.db", tmp_path))


@pytest.fixture
def on_each(called: Called, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    monkeypatch.setenv("KEY", CANARY)
    return with_weather(prepared(called, database_url, tmp_path))


def with_weather(made: Commands) -> Commands:
    bearer = ("--set", "auth_type=bearer", "--secret-env", "api_key=KEY")
    made.done("tools", "add", "weather", "--id", "w1", *bearer)
    return made


def turn(place: Path, name: str, arguments: Any) -> Path:
    call = {"id": "c1", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    path = place / "turn.json"
    path.write_text(json.dumps({"choices": [{"message": {"role": "assistant", "tool_calls": [call]}}]}))
    return path


def test_what_is_said_of_actions(commands: Commands, tmp_path: Path) -> None:
    edit = ("tools", "edit", "w1", "--action", "forecast")
    (said,) = commands.done(*edit, "--approval", "--preset", "days=3", "--describe", "Ahead").lines
    forecast, warn = said["actions"]
    assert (forecast["require_approval"], forecast["presets"], forecast["description"]) == (True, {"days": 3}, "Ahead")
    assert warn["name"] == "warn", "what was said of one takes no other away"
    (said,) = commands.done(*edit, "--pin", "days=2", "--hide", "days", "--no-approval", "--describe", "").lines
    forecast = said["actions"][0]
    assert (forecast["presets"], forecast["pinned"], forecast["hidden"]) == ({}, {"days": 2}, ["days"])
    assert (forecast["require_approval"], forecast["description"]) == (False, None)
    (said,) = commands.done(*edit, "--plain", "--disable").lines
    assert said["actions"][0]["active"] is False
    assert said["actions"][0]["pinned"] == {}
    (tmp_path / "a.json").write_text('[{"name": "warn", "require_approval": true}]')
    (said,) = commands.done("tools", "edit", "w1", "--actions", "a.json").lines
    assert [each["name"] for each in said["actions"]] == ["warn"]
    (tmp_path / "a.json").write_text("null")
    assert commands.done("tools", "edit", "w1", "--actions", "a.json").lines[0]["actions"] is None
    (tmp_path / "a.json").write_text('[{"nam": "warn"}]')
    check_refused(commands("tools", "edit", "w1", "--actions", "a.json"), 2, "a.json", "name")
    check_refused(commands("tools", "edit", "w1", "--actions", "a.json", "--hide", "x"), 2, "--actions")


def test_a_row_is_tested_and_refreshed(commands: Commands) -> None:
    (tested,) = commands.done("tools", "test", "w1").lines
    assert (tested["ok"], [each["name"] for each in tested["actions"]]) == (True, ["forecast", "warn"])
    dry = ("tools", "test", "w1", "--dry-run", "--action", "forecast", "--arguments", '{"city": "Ulm"}')
    assert commands.done(*dry).lines == [{"action": "forecast", "arguments": {"city": "Ulm"}}]
    (first,) = commands.done("tools", "refresh", "w1").lines
    assert (first["added"], first["removed"], first["version"]) == (["forecast", "warn"], [], 2)
    offers = [{"name": "warn", "description": "Louder", "parameters": {}}, {"name": "snow", "parameters": {}}]
    (commands.folder / "offers.json").write_text(json.dumps(offers))
    difference = {"id": "w1", "added": ["snow"], "removed": ["forecast"], "changed": ["warn"], "same": 0}
    looked = commands.done("tools", "refresh", "w1", "--dry-run").lines
    assert looked == [difference | {"version": 2, "kept": False}]
    assert commands.done("tools", "refresh", "w1").lines == [difference | {"version": 3, "kept": True}]
    (again,) = commands.done("tools", "refresh", "w1").lines
    assert (again["same"], again["version"]) == (2, 3)
    (shown,) = commands.done("tools", "show", "w1").lines
    assert shown["actions_metadata"] == offers
    people = commands.done("--no-json", "tools", "refresh", "w1").out
    assert people == "2 as before; w1@3\n"
    assert "w1 works; 2 actions" in commands.done("--no-json", "tools", "test", "w1").out


def test_a_row_that_does_not_work_says_so(commands: Commands) -> None:
    (commands.folder / "offers.json").write_text("not JSON")
    tested = commands("tools", "test", "w1")
    assert (tested.code, tested.lines[0]["ok"]) == (1, False)
    assert "weather" in tested.lines[0]["problem"].lower()
    assert CANARY not in tested.out + tested.err
    check_refused(commands("tools", "refresh", "w1"), 2, "cannot say what its actions are")


def test_an_api_is_imported_and_its_requests_are_looked_at(commands: Commands, tmp_path: Path) -> None:
    (tmp_path / "pets.json").write_text(json.dumps(DOCUMENT))
    secret = ("--secret-env", "key=KEY")
    added = commands.done("tools", "add", "api_tool", "--openapi", "pets.json", "--id", "pets", *secret)
    (row,) = added.lines
    assert (row["label"], [each["operation"] for each in row["skipped"]]) == ("Pets", ["POST /odd"])
    assert "POST /odd is left out" in added.err
    dry = ("tools", "test", "pets", "--dry-run", "--action", "getPet", "--arguments", '{"id": 4}')
    (request,) = commands.done(*dry).lines
    assert (request["method"], request["url"]) == ("GET", "https://pets.example/v1/pets/4")
    assert ["X-Key", "***"] in request["headers"]
    assert commands.done("--no-json", *dry).out.startswith("GET /v1/pets/4 HTTP/1.1\nHost: pets.example\n")
    (shown,) = commands.done("tools", "show", "pets").lines
    assert shown["config"]["actions"]["deletePet"]["require_approval"] is True
    assert [each["operation"] for each in row["withheld"]] == ["GET /photos"]
    assert "GET /photos is refused for now" in added.err
    photos = ("tools", "test", "pets", "--dry-run", "--action", "photos")
    check_refused(commands(*photos), 2, "not for https://photos.example", "trusted_origins")
    check_refused(commands("tools", "edit", "pets", "--trust", "photos.example"), 2, "is no origin")
    trusted = commands.done("tools", "edit", "pets", "--trust", "https://photos.example/").lines[0]["config"]
    assert trusted["trusted_origins"] == ["https://pets.example", "https://photos.example"]
    assert commands.done(*photos).lines[0]["url"] == "https://photos.example/photos"
    by_hand = {"actions": {"a": {"url": "https://a.example", "security": None}, "b": {"url": "https://b.example"}}}
    (tmp_path / "hand.json").write_text(json.dumps({"security": [{"in": "bearer", "secret": "key"}], **by_hand}))
    commands.done("tools", "add", "api_tool", "--config", "hand.json", "--id", "hand", *secret)
    trusted = commands.done("tools", "edit", "hand", "--trust", "https://c.example").lines[0]["config"]
    assert trusted["trusted_origins"] == ["https://b.example", "https://c.example"]
    (tmp_path / "c.txt").write_text(
        f"curl https://api.example/v1/x -H 'Authorization: Bearer {CANARY}' -d '{{\"a\":1}}'"
    )
    (curl,) = commands.done("tools", "add", "api_tool", "--curl", "c.txt").lines
    assert commands.done("tools", "list").lines[-1 - len(_defaults(commands))]["has_secrets"] is True
    check_refused(commands("tools", "refresh", curl["id"]), 2, "own configuration")
    (tmp_path / "empty.json").write_text("{}")
    for file in ("empty.json", "none.json"):
        check_refused(commands("tools", "add", "api_tool", "--openapi", file), 2)
    check_refused(commands("tools", "add", "api_tool", "--openapi", "a", "--curl", "b"), 2, "not both")


def _defaults(commands: Commands) -> list[Any]:
    return [each for each in commands.done("tools", "list").lines if each["role"] == "default"]


def test_a_kept_row_is_run_approved_and_resumed(on_each: Commands, tmp_path: Path) -> None:
    run = ("run", turn(tmp_path, "forecast", {"city": "Ulm"}), "--message")
    *_, done = on_each.done(*run, "m1").lines
    assert (done["type"], done["tool_id"], json.loads(done["result"])["key"]) == ("executed", "w1", True)
    on_each.done("tools", "edit", "w1", "--action", "forecast", "--approval")
    waiting = on_each(*run, "m2")
    assert (waiting.code, waiting.lines[-1]["type"]) == (1, "paused")
    assert on_each.done("approve", "m2:c1", "--edit", '{"city": "Rom"}').code == 0
    assert json.loads(on_each.done("resume", "m2:c1").lines[-1]["result"])["city"] == "Rom"
    assert on_each(*run, "m3").code == 1
    on_each.done("approve", "m3:c1")
    on_each.done("tools", "remove", "w1")
    check_refused(on_each("resume", "m3:c1"), 2, "'w1'", "left as it is")
    unknown = on_each(*run, "m4")
    assert (unknown.code, unknown.lines[-1]["kind"]) == (1, "unknown_tool")


def test_a_kept_row_goes_before_the_command_s_own(commands: Commands, tmp_path: Path) -> None:
    """``notes`` needs no row here; whoever keeps one uses that, and no second tool of the name comes up."""
    commands.done("tools", "add", "notes", "--id", "n1")
    (said,) = commands.done("tools", "test", "n1").lines
    name = str(said["actions"][0]["name"])
    ran = commands("run", turn(tmp_path, name, {}), "--message", "m1")
    assert ran.lines[0]["tool_id"] == "n1"


def test_rows_are_shared_and_teams_kept(on_each: Commands, tmp_path: Path) -> None:
    run = ("run", turn(tmp_path, "forecast", {"city": "Ulm"}), "--message")
    assert on_each(*run, "m1", user="bob").lines[-1]["kind"] == "unknown_tool"
    for member in ("u", "bob"):
        on_each.done("teams", "join", "ops", member)
    assert [each["user"] for each in on_each.done("teams", "members", "ops").lines] == ["bob", "u"]
    (share,) = on_each.done("tools", "share", "w1", "--team", "ops").lines
    assert share == {"id": "w1", "kind": "team", "name": "ops", "role": "viewer"}
    (viewed,) = on_each.done("tools", "show", "w1", user="bob").lines
    assert (viewed["role"], viewed["owner"], "shares" in viewed) == ("viewer", "u", False)
    assert on_each.done(*run, "m2", user="bob").lines[-1]["type"] == "executed"
    check_refused(on_each("tools", "edit", "w1", "--action", "warn", "--disable", user="bob"), 2, "to be used")
    check_refused(on_each("tools", "test", "w1", user="bob"), 2, "only its owner")
    check_refused(on_each("tools", "refresh", "w1", user="bob"), 2, "only its owner")
    on_each.done("tools", "share", "w1", "--to", "bob", "--editor")
    assert on_each.done("tools", "offered", user="bob").lines == [], "through the team it is there already"
    on_each.done("tools", "edit", "w1", "--action", "warn", "--disable", user="bob")
    check_refused(on_each("tools", "edit", "w1", "--label", "x", user="bob"), 2, "its owner the rest")
    assert "shared to team 'ops' as viewer" in on_each.done("--no-json", "tools", "show", "w1").out
    on_each.done("tools", "unshare", "w1", "--to", "bob")
    assert "bob is not any more in ops" in on_each.done("--no-json", "teams", "leave", "ops", "bob").out
    check_refused(on_each("tools", "show", "w1", user="bob"), 2, "no tool row 'w1'")
    check_refused(on_each("teams", "leave", "ops", "bob"), 2, "not in team")
    check_refused(on_each("teams", "join", " ", "bob"), 2, "name")
    assert on_each.done("--no-json", "teams", "members", "none").out == "nobody\n"


def test_what_is_shared_to_a_user_waits_until_it_is_accepted(on_each: Commands, tmp_path: Path) -> None:
    run = ("run", turn(tmp_path, "forecast", {"city": "Ulm"}), "--message")
    check_refused(on_each("tools", "accept", "w1", user="bob"), 2, "there is no tool row 'w1'")
    assert on_each.done("--no-json", "tools", "offered", user="bob").out == "nothing waits to be accepted\n"
    on_each.done("tools", "share", "w1", "--everyone")
    assert on_each(*run, "m1", user="bob").lines[-1]["kind"] == "unknown_tool"
    assert "1 to be accepted" in on_each.done("--no-json", "tools", "list", user="bob").out
    assert "to be accepted" not in on_each.done("--no-json", "tools", "list").out
    (waiting,) = on_each.done("tools", "offered", user="bob").lines
    facts = {"id": "w1", "name": "weather", "owner": "u", "role": "viewer", "accepted": False, "has_secrets": True}
    assert {name: waiting[name] for name in facts} == facts
    assert waiting["action_names"] == ["forecast", "warn"]
    check_refused(on_each("tools", "accept", "w1", "--version", "7", user="bob"), 3, "at version 1, not 7")
    told = on_each.done("--no-json", "tools", "accept", "w1", user="bob").out
    assert [word for word in ("w1 is accepted", "viewer, of u", "weather", "forecast, warn") if word not in told] == []
    assert on_each.done(*run, "m2", user="bob").lines[-1]["type"] == "executed"
    assert on_each(*run, "m3", user="eve").lines[-1]["kind"] == "unknown_tool"
    on_each.done("tools", "leave", "w1", user="bob")
    assert on_each(*run, "m4", user="bob").lines[-1]["kind"] == "unknown_tool"
    check_refused(on_each("tools", "leave", "w1"), 2, "your own")
