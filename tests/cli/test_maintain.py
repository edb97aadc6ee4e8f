"""``verify``, ``rebuild``, ``migrate``: the care of a journal."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from engine.schema import HEAD
from tests.cli.command import EXAMPLES, Called


@pytest.fixture
def filled(called: Called, database_url: str) -> str:
    done = called("run", EXAMPLES / "turn.json", "--tools", EXAMPLES / "tools", "--database", database_url)
    assert done.code == 0, done
    return database_url


def test_a_sound_journal(called: Called, filled: str) -> None:
    done = called("verify", "--database", filled)
    assert (done.code, done.err) == (0, "")
    assert {name: done.lines[0][name] for name in ("ok", "problems", "events", "streams")} == {
        "ok": True,
        "problems": [],
        "events": 4,
        "streams": 2,
    }
    assert called("verify", "--no-json", "--database", filled).out.startswith("ok: ")


def test_a_changed_row_is_found_and_made_anew(called: Called, tmp_path: Path) -> None:
    assert called("run", EXAMPLES / "turn.json", "--tools", EXAMPLES / "tools").code == 0
    with closing(sqlite3.connect(tmp_path / "journal.db")) as connection:
        connection.execute("UPDATE tool_call_attempts SET status = 'failed' WHERE stream = 3")
        connection.commit()
    found = called("verify")
    assert (found.code, found.err) == (1, "")
    assert "status" in found.lines[0]["problems"][0]["message"]
    shown = called("verify", "--no-json")
    assert shown.code == 1
    assert "roll_dice" in shown.out or "call_01" in shown.out
    assert "not ok: 1 problem " in shown.out
    assert called("rebuild").code == 0
    assert called("verify").code == 0


def test_rebuild_leaves_a_sound_table(called: Called, filled: str) -> None:
    before = called("attempts", "--database", filled).out
    done = called("rebuild", "--database", filled)
    assert (done.code, done.err) == (0, "")
    assert done.lines[0]["ok"] is True
    assert called("attempts", "--database", filled).out == before


def test_verify_goes_on_where_it_was(called: Called, filled: str, tmp_path: Path) -> None:
    kept = tmp_path / "verify.json"
    assert called("verify", "--resume", kept, "--database", filled).lines[0]["events"] == 4
    assert not kept.exists()
    kept.write_text('{"head": 4, "sealed": null, "stream": 1, "events": 2, "streams": 1}')
    resumed = called("verify", "--resume", kept, "--database", filled)
    assert (resumed.code, resumed.lines[0]["events"]) == (0, 4)
    assert not kept.exists()
    kept.write_text('{"head": "four"}')
    refused = called("verify", "--resume", kept, "--database", filled)
    assert refused.code == 2
    assert "verify.json" in refused.err
    assert kept.exists()


def test_migrate_says_what_it_applied(called: Called, tmp_path: Path) -> None:
    done = called("migrate", "--database", "sqlite:///new.db")
    assert (done.code, done.err) == (0, "")
    assert done.lines == [
        {
            "applied": [
                "events:0001",
                *(f"projections:000{number}" for number in (1, 2)),
                *(f"engine:{number:04}" for number in range(1, int(HEAD) + 1)),
            ]
        }
    ]
    assert called("migrate", "--database", "sqlite:///new.db").lines == [{"applied": []}]
    assert called("migrate", "--no-json", "--database", "sqlite:///new.db").out == (
        "sqlite:///new.db: up to date, nothing to apply\n"
    )
    assert called("events", "--database", "sqlite:///new.db").code == 0


@pytest.mark.postgres
def test_migrate_makes_postgres_ready(called: Called, empty_postgres_url: str) -> None:
    done = called("--no-json", "migrate", "--database", empty_postgres_url)
    assert (done.code, done.err) == (0, "")
    assert "events:0001" in done.out
    assert "canary" not in done.out
    assert called("migrate", "--database", empty_postgres_url).lines == [{"applied": []}]
    assert called("events", "--database", empty_postgres_url).code == 0
