"""``doctor``: what is wrong, and what to do."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from engine.cli.environment import check_dependencies, check_packages, check_python
from engine.schema import HEAD
from tests.cli.command import EXAMPLES, Called, environment
from tests.shape import ROOT


def faults(lines: list[dict[str, str]]) -> list[str]:
    return [line["subject"] for line in lines if line["level"] == "fault"]


def test_a_sound_journal(called: Called, database_url: str) -> None:
    run = called("run", EXAMPLES / "turn.json", "--tools", EXAMPLES / "tools", "--database", database_url)
    assert run.code == 0
    done = called("doctor", "--database", database_url)
    assert (done.code, done.err, faults(done.lines)) == (0, "", [])
    messages = {line["subject"]: line["message"] for line in done.lines}
    assert messages["schema"] == f"engine {HEAD}, events 0001, projections 0002"
    assert messages["writing"]
    durable = "synchronous=full" if database_url.startswith("sqlite") else "fsync=on, synchronous_commit=on"
    assert durable in messages["durability"]
    assert "canary" not in done.out
    assert len(called("events", "--database", database_url).lines) == 4


def test_no_journal_yet_is_no_fault_and_none_is_made(called: Called, tmp_path: Path) -> None:
    done = called("doctor", "--no-json")
    assert done.code == 0
    assert "calljournal run" in done.out
    assert list(tmp_path.iterdir()) == []


def test_a_database_that_is_not_there(called: Called) -> None:
    done = called("doctor", "--database", "postgresql://me:canary-4f1d@127.0.0.1:1/journal")
    assert (done.code, done.err) == (1, "")
    assert faults(done.lines) == ["database"]
    assert "canary" not in done.out
    assert faults(called("doctor", "--database", "sqlite:///no/where.db").lines) == ["database"]


def test_a_foreign_and_a_damaged_file(called: Called, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "foreign.db")) as connection:
        connection.execute("CREATE TABLE accounts (id INTEGER)")
        connection.commit()
    before = (tmp_path / "foreign.db").read_bytes()
    done = called("doctor", "--database", "sqlite:///foreign.db")
    assert (done.code, faults(done.lines)) == (1, ["database"])
    assert (tmp_path / "foreign.db").read_bytes() == before
    assert called("migrate").code == 0
    content = bytearray((tmp_path / "journal.db").read_bytes())
    content[-4096:] = b"\xa5" * 4096
    (tmp_path / "journal.db").write_bytes(content)
    damaged = called("doctor")
    assert (damaged.code, faults(damaged.lines)) == (1, ["file"])
    assert "backup" in damaged.out


def test_workers_that_ended_without_a_word(called: Called, tmp_path: Path) -> None:
    assert called("migrate").code == 0
    with closing(sqlite3.connect(tmp_path / "journal.db")) as connection:
        times = ("2020-01-01T00:00:00.000000+00:00", "2020-01-01T00:00:30.000000+00:00")
        connection.execute("INSERT INTO worker_leases VALUES ('w1', ?, ?)", times)
        connection.commit()
    done = called("doctor")
    assert done.code == 0
    warned = next(line for line in done.lines if line["subject"] == "workers")
    assert warned["level"] == "warning"
    assert "calljournal reconcile" in warned["advice"]


def test_a_tool_that_cannot_be_imported(called: Called, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "broken.py").write_text("import no_such_library")
    done = called("doctor", "--tools", "own")
    assert (done.code, faults(done.lines)) == (1, ["tools"])
    assert "no_such_library" in done.out


def test_a_foreign_package_of_our_name_does_not_stop_doctor(tmp_path: Path) -> None:
    foreign = tmp_path / "site" / "events"
    foreign.mkdir(parents=True)
    (foreign / "__init__.py").write_text("from .events import Events\n")
    (foreign / "events.py").write_text("class Events: pass\n")
    # As site-packages do: before the folder that an editable install appends.
    env = environment(PYTHONPATH=f"{tmp_path / 'site'}:{ROOT}")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "engine.cli", "--no-json", "doctor"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert f"`import events` finds {foreign}" in done.stdout


def test_python_is_checked() -> None:
    assert check_python((3, 11, 0)).level == "ok"
    assert check_python((3, 10, 9)).level == "fault"
    assert check_python((3, 14, 0)).level == "fault"


def test_dependencies_are_checked() -> None:
    wanted = ["anyio>=4.16", "sqlalchemy[asyncio]>=2.0.36", "rich>=14", "click", "pytest>=9 ; extra == 'test'"]
    installed = {"anyio": "4.9.0", "sqlalchemy": "2.1.0b1", "click": "8.1"}
    found = {finding.subject: finding for finding in check_dependencies(wanted, installed.get)}
    assert {name: finding.level for name, finding in found.items()} == {
        "anyio": "fault",
        "sqlalchemy": "ok",
        "rich": "fault",
        "click": "ok",
    }
    assert "pip install 'rich>=14'" in found["rich"].advice


def test_packages_are_checked(tmp_path: Path) -> None:
    def find(name: str) -> Path:
        return tmp_path / name

    for name in ("events", "projections", "engine"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text((ROOT / name / "__init__.py").read_text())
    assert [finding.level for finding in check_packages(tmp_path, find, {"events": ["calljournal"]})] == ["ok"] * 3
    shared = next(iter(check_packages(tmp_path, find, {"events": ["calljournal", "Events"]})))
    assert shared.level == "warning"
    (tmp_path / "events" / "__init__.py").write_text("from .events import Events\n")
    overwritten = next(iter(check_packages(tmp_path, find, {"events": ["calljournal", "Events"]})))
    assert overwritten.level == "fault"
    assert overwritten.advice.startswith("pip uninstall Events; then pip install")


@pytest.mark.parametrize("name", ["events", "projections", "engine"])
def test_our_own_packages_are_recognised(name: str) -> None:
    found = {finding.subject: finding.level for finding in check_packages(ROOT, lambda name: ROOT / name, {})}
    assert found[name] == "ok"
