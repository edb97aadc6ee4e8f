"""``events``, ``attempts``, ``tools``: what is there, for people and for programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import EXAMPLES, Called

TOOLS = EXAMPLES / "tools"


@pytest.fixture
def filled(called: Called, database_url: str) -> str:
    """Two turns of nobody's, one of alice's."""
    assert called("run", EXAMPLES / "turn.json", "--tools", TOOLS, "--database", database_url).code == 0
    assert called("run", EXAMPLES / "family_turn.json", "--tools", TOOLS, "--database", database_url).code == 0
    assert called("run", EXAMPLES / "notes_turn.json", "--user", "alice", "--database", database_url).code == 0
    return database_url


def positions(called: Called, url: str, *options: str) -> list[int]:
    done = called("events", "--database", url, *options)
    assert (done.code, done.err) == (0, "")
    return [line["position"] for line in done.lines]


def test_events_are_the_tenants_own_in_order(called: Called, filled: str) -> None:
    assert positions(called, filled) == list(range(1, 13))
    assert positions(called, filled, "--user", "alice") == list(range(13, 19))
    assert positions(called, filled, "--user", "bob") == []
    assert positions(called, filled, "--all-tenants") == list(range(1, 19))
    assert positions(called, filled, "--after", "10") == [11, 12]
    assert positions(called, filled, "--after", "end") == []


def test_one_calls_events_and_whole_events(called: Called, filled: str) -> None:
    light = called("events", "--database", filled, "--user", "alice", "--key", "chatcmpl-notes:call_2").lines
    assert [(line["type"], line["version"]) for line in light] == [("proposed", 1), ("executed", 2)]
    assert all(line["recorded_at"] for line in light)
    assert "digest" not in light[0]
    assert called("events", "--database", filled, "--key", "chatcmpl-notes:call_2").lines == []
    full = called("events", "--database", filled, "--full").lines
    assert [len(line["digest"]) for line in full[::2]] == [64] * 6


def test_events_for_people(called: Called, filled: str) -> None:
    lines = called("events", "--no-json", "--database", filled).out.splitlines()
    assert len(lines) == 12
    assert "roll_dice" in lines[2]
    assert max(map(len, lines)) <= 100


def test_attempts_by_tenant_status_and_turn(called: Called, filled: str) -> None:
    def keys(*options: str) -> list[str]:
        done = called("attempts", "--database", filled, *options)
        assert (done.code, done.err) == (0, "")
        return [line["key"] for line in done.lines]

    everybody = keys("--all-tenants")
    assert len(everybody) == 9
    assert keys() == everybody[:6]
    assert keys("--user", "alice", "--message", "chatcmpl-notes") == everybody[6:]
    assert keys("--message", "chatcmpl-notes") == []
    assert keys("--status", "executed") == everybody[:6]
    assert keys("--status", "failed") == []
    assert keys("--limit", "2") == everybody[4:6]
    assert keys("--limit", "99") == everybody[:6]


def test_attempts_for_people(called: Called, filled: str) -> None:
    done = called("attempts", "--no-json", "--database", filled, "--user", "alice")
    assert "chatcmpl-notes:call_3" in done.out
    assert "notes.note_view" in done.out
    assert max(map(len, done.out.splitlines())) <= 100
    assert called("attempts", "--no-json", "--database", filled, "--user", "bob").out == "no calls\n"


def test_the_options_may_stand_before_the_command(called: Called, filled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    after = called("events", "--database", filled, "--user", "alice", "--json").out
    assert called("--database", filled, "--user", "alice", "--json", "events").out == after
    monkeypatch.setenv("CALLJOURNAL_DATABASE_URL", filled)
    assert called("events", "--user", "alice").out == after
    assert called("--user", "bob", "events", "--user", "alice").out == after
    assert called("--database", "sqlite:///elsewhere.db", "events").code == 3


def test_the_catalogue(called: Called, tmp_path: Path) -> None:
    tools = {line["name"]: line for line in called("tools", "--tools", TOOLS).lines}
    assert {"dice", "family", "notes", "player", "read_webpage", "think"} <= set(tools)
    assert tools["think"]["internal"] is True
    assert tools["notes"]["user_scoped"] is True
    assert tools["dice"]["actions"] == ["roll_dice"]
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "broken.py").write_text("1 / 0")
    done = called("tools", "--no-json", "--tools", "own")
    assert done.code == 1
    assert "note_view" in done.out
    assert "ZeroDivisionError" in done.err
    assert done.err.count("\n") == 1
