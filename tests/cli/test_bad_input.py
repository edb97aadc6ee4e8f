"""Whatever is wrong: one clear line, exit code 2 or 3, nothing half-written, no traceback, no password."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import asyncpg
import pytest

from tests.cli.command import EXAMPLES, TRACES, Called, check_refused, environment, started
from tests.postgres_server import PASSWORD, PostgresServer

TURN = EXAMPLES / "turn.json"
TOOLS = EXAMPLES / "tools"
CALL = {"id": "c1", "function": {"name": "roll_dice", "arguments": "{}"}}

BAD_FILES = {
    "broken JSON": ('{"choices": [\n  {"message": }]}', ["line 2, column 15", "not JSON"]),
    "cut off": ('{"choices": [{"message"', ["not JSON", "line 1"]),
    "empty": ("  \n", ["empty"]),
    "two responses": ("{}\n{}", ["line 2", "one response to a file"]),
    "NaN": ('{"choices": [NaN]}', ["NaN"]),
    "too deep": ("[" * 100_000, ["nested too deeply"]),
    "no object": ("[1]", ["an array", "one object"]),
    "a stream": ('data: {"choices": []}\n', ["stream"]),
    "no calls": ('{"choices": [{"message": {"content": "Hello"}}]}', ["no tool calls"]),
    "unknown shape": ('{"answer": 42}', ["answer", "--family", "anthropic"]),
    "a provider's error": ('{"error": {"message": "overloaded"}}', ["overloaded", "error"]),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_file_that_is_no_response(called: Called, tmp_path: Path, name: str) -> None:
    text, words = BAD_FILES[name]
    (tmp_path / "turn.json").write_text(text)
    check_refused(called("run", "turn.json"), 2, "turn.json", *words)
    assert not (tmp_path / "journal.db").exists()


def test_a_file_that_cannot_be_read(called: Called, tmp_path: Path) -> None:
    check_refused(called("run", "nowhere.json"), 2, "nowhere.json", "no file")
    check_refused(called("run", tmp_path), 2, "folder")
    (tmp_path / "picture.json").write_bytes(b'{"a": "\xff\xfe\xfa"}')
    check_refused(called("run", "picture.json"), 2, "picture.json", "byte 7")
    check_refused(called("run", "new\nline"), 2, "no file")
    assert list(tmp_path.glob("*.db*")) == []


def test_nothing_on_standard_input(tmp_path: Path) -> None:
    check_refused(started("run", "-", cwd=tmp_path), 2, "standard input", "empty")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", TURN, "--family", "cohere"], ["cohere", "anthropic", "--help"]),
        (["run"], ["FILE", "run --help"]),
        (["rune"], ["rune", "--help"]),
        (["run", TURN, "--frobnicate"], ["--frobnicate"]),
        (["run", TURN, "--tools", "nowhere"], ["--tools", "nowhere"]),
        (["run", TURN, "--message", "a\x00b"], ["message id", "NUL"]),
        (["events", "--after", "yesterday"], ["--after", "yesterday"]),
        (["events", "--key", "k", "--follow"], ["--key"]),
        (["events", "--user", "u", "--all-tenants"], ["--all-tenants"]),
        (["events", "--after", str(2**63)], ["--after"]),
        (["events", "--user", "a\udcff"], ["user id"]),
        (["attempts", "--message", "a\udcff"], ["message id"]),
        (["run", TURN, "--conversation", "a" * 3000], ["conversation id", "3000"]),
        (["attempts", "--status", "lost"], ["lost", "executed"]),
        (["attempts", "--limit", "0"], ["--limit"]),
        (["events", "--database", "mysql://me:canary-4f1d@host/db"], ["mysql", "postgresql://"]),
        (["events", "--database", "me:canary-4f1d@host/db"], ["not a database URL"]),
        (["run", TURN, "--database", "journal.db"], ["not a database URL", "sqlite:///"]),
    ],
)
def test_a_wrong_request(called: Called, arguments: list[str | Path], words: list[str]) -> None:
    check_refused(called(*arguments), 2, *words)


def test_a_family_that_does_not_fit(called: Called) -> None:
    check_refused(called("run", TURN, "--family", "anthropic"), 2, "anthropic", "looks like openai")


@pytest.mark.parametrize("command", [["events"], ["attempts"], ["verify"], ["rebuild"]])
def test_looking_makes_no_journal(called: Called, tmp_path: Path, command: list[str]) -> None:
    check_refused(called(*command, "--database", "sqlite:///typo.db"), 3, "typo.db", "--database")
    assert list(tmp_path.iterdir()) == []


COMMANDS: list[list[str | Path]] = [["run", TURN], ["events"], ["attempts"], ["verify"], ["rebuild"], ["migrate"]]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: str(command[0]))
def test_a_foreign_sqlite_file_stays_as_it_is(called: Called, tmp_path: Path, command: list[str | Path]) -> None:
    with closing(sqlite3.connect(tmp_path / "journal.db")) as connection:
        connection.execute("CREATE TABLE accounts (id INTEGER)")
        connection.commit()
    before = (tmp_path / "journal.db").read_bytes()
    check_refused(called(*command), 3, "belongs to something else", "accounts")
    assert (tmp_path / "journal.db").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["journal.db"]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: str(command[0]))
def test_a_file_that_is_no_database(called: Called, tmp_path: Path, command: list[str | Path]) -> None:
    (tmp_path / "journal.db").write_text("Dear diary, " * 200)
    check_refused(called(*command), 3, "SQLite database", "another path")
    assert (tmp_path / "journal.db").read_text() == "Dear diary, " * 200


def test_a_folder_that_does_not_exist_and_a_folder_for_a_file(called: Called, tmp_path: Path) -> None:
    check_refused(called("run", TURN, "--database", "sqlite:///no/such/journal.db"), 3, "folder does not exist")
    (tmp_path / "folder.db").mkdir()
    check_refused(called("run", TURN, "--database", "sqlite:///folder.db"), 3, "cannot be opened")


def made(called: Called, database: str | None = None) -> None:
    done = called("run", TURN, "--tools", TOOLS, *(["--database", database] if database else []))
    assert done.code == 0, done


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: str(command[0]))
def test_a_newer_schema(called: Called, tmp_path: Path, command: list[str | Path]) -> None:
    made(called)
    with closing(sqlite3.connect(tmp_path / "journal.db")) as connection:
        connection.execute(
            "UPDATE calljournal_schema SET revision = '9999', compatible = '9998' WHERE package = 'events'"
        )
        connection.commit()
    check_refused(called(*command), 3, "newer calljournal", "upgrade calljournal")


DAMAGE = "UPDATE tool_call_events SET data = substr(data, 1, 40) WHERE position = 3"


def check_damage(called: Called, url: str) -> None:
    ended = called("events", "--database", url)
    assert ended.code == 3
    assert [line["position"] for line in ended.lines] == [1, 2]
    assert "damaged at position 3" in ended.err
    assert "backup" in ended.err
    assert ended.err.count("\n") == 1
    found = called("verify", "--database", url)
    assert (found.code, found.err) == (1, "")
    assert 3 in [problem["position"] for problem in found.lines[0]["problems"]]


def test_a_damaged_event(called: Called, tmp_path: Path) -> None:
    made(called)
    with closing(sqlite3.connect(tmp_path / "journal.db")) as connection:
        without_triggers(connection).execute(DAMAGE)
        connection.commit()
    check_damage(called, "sqlite:///journal.db")


@pytest.mark.postgres
def test_a_damaged_event_in_postgres(called: Called, postgres: PostgresServer, postgres_url: str) -> None:
    made(called, postgres_url)
    postgres.run(_damage, postgres_url)
    check_damage(called, postgres_url)


async def _damage(url: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(f"SET session_replication_role = replica; {DAMAGE}")
    await connection.close()


def test_a_damaged_row_is_made_anew(called: Called, tmp_path: Path) -> None:
    made(called)
    with closing(sqlite3.connect(tmp_path / "journal.db")) as connection:
        connection.execute("UPDATE tool_call_attempts SET result = '{' WHERE stream = 1")
        connection.commit()
    check_refused(called("attempts"), 3, "state row", "damaged", "rebuild")
    assert called("rebuild").code == 0
    assert len(called("attempts").lines) == 2


def without_triggers(connection: sqlite3.Connection) -> sqlite3.Connection:
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        connection.execute(f"DROP TRIGGER {name}")
    return connection


@pytest.mark.parametrize("command", [["events"], ["attempts"], ["verify"], ["rebuild"], ["run", TURN]], ids=str)
def test_a_damaged_file(called: Called, tmp_path: Path, command: list[str | Path]) -> None:
    made(called)
    file = tmp_path / "journal.db"
    content = bytearray(file.read_bytes())
    # Every page but the first, which says that it is a database, and what is in it.
    content[4096:] = b"\xa5" * (len(content) - 4096)
    file.write_bytes(content)
    check_refused(called(*command), 3, "damaged", "backup")


def test_nobody_listens(called: Called, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"postgresql://me:{PASSWORD}@127.0.0.1:{taken.getsockname()[1]}/journal"
        following: list[str | Path] = ["events", "--follow"]
        for command in [*COMMANDS, following]:
            check_refused(called(*command, "--database", url), 3, "127.0.0.1", "no connection", "check that it runs")
    unknown = f"postgresql://me@no-such-host.invalid/journal?password={PASSWORD}"
    check_refused(called("events", "--database", unknown), 3, "no-such-host.invalid")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.postgres
def test_postgres_without_the_database_or_its_tables(
    called: Called, postgres: PostgresServer, empty_postgres_url: str
) -> None:
    missing = postgres.url("no_such_database")
    for command in COMMANDS:
        check_refused(called(*command, "--database", missing), 3, "no such database")
    for command in COMMANDS[:-1]:
        check_refused(called(*command, "--database", empty_postgres_url), 3, "calljournal migrate")
    unknown = f"postgresql://stranger:{PASSWORD}@127.0.0.1:{postgres.port}/postgres"
    check_refused(called("events", "--database", unknown), 3, "refuses this user", "user and password")


@pytest.mark.postgres
def test_a_newer_postgres_schema(called: Called, postgres: PostgresServer, postgres_url: str) -> None:
    async def age(url: str) -> None:
        connection = await asyncpg.connect(url)
        await connection.execute("UPDATE calljournal_schema SET revision = '9999', compatible = '9999'")
        await connection.close()

    postgres.run(age, postgres_url)
    for command in COMMANDS:
        check_refused(called(*command, "--database", postgres_url), 3, "newer calljournal", "upgrade")


def _bound(arguments: list[str | Path], cwd: Path, before: Callable[[], None]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "engine.cli", *map(str, arguments)],
        cwd=cwd,
        env=environment() | {"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        preexec_fn=before,
    )


def check_bound(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert done.returncode == 3, done
    assert done.stderr.count("\n") == 1
    assert [word for word in words if word not in done.stderr] == []
    assert [trace for trace in TRACES if trace in done.stderr] == []


def _obey_permissions() -> None:
    # The superuser's right to write anywhere; without it, permissions hold for root too.
    if os.geteuid() == 0:
        drop_from_bounding_set, right_to_override = 24, 1
        ctypes.CDLL(None).prctl(drop_from_bounding_set, right_to_override)


def test_a_read_only_folder_and_a_read_only_file(called: Called, tmp_path: Path) -> None:
    folder = tmp_path / "shut"
    folder.mkdir()
    folder.chmod(0o555)
    done = _bound(["run", TURN, "--database", "sqlite:///shut/journal.db"], tmp_path, _obey_permissions)
    check_bound(done, "shut/journal.db", "cannot be opened")
    assert list(folder.iterdir()) == []
    folder.chmod(0o755)
    made(called, "sqlite:///shut/journal.db")
    (folder / "journal.db").chmod(0o444)
    folder.chmod(0o555)
    again: list[str | Path] = ["run", TURN, "--message", "m2", "--database", "sqlite:///shut/journal.db"]
    check_bound(_bound(again, tmp_path, _obey_permissions), "read-only")
    folder.chmod(0o755)
    assert len(called("events", "--database", "sqlite:///shut/journal.db").lines) == 4


@pytest.mark.parametrize("kilobytes", [8, 120, 200])
def test_no_room_to_write(called: Called, tmp_path: Path, kilobytes: int) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (kilobytes * 1024, resource.RLIM_INFINITY))

    call = {"id": "c1", "function": {"name": "reason", "arguments": json.dumps({"reasoning": "x" * 19_000})}}
    calls = [call | {"id": f"c{number}"} for number in range(40)]
    (tmp_path / "turn.json").write_text(json.dumps({"choices": [{"message": {"tool_calls": calls}}]}))
    done = _bound(["run", "turn.json"], tmp_path, limit)
    check_bound(done, "disk", "; ")
    shown = [json.loads(line) for line in done.stdout.splitlines()]
    seen = [line["position"] for line in shown if "position" in line]
    # What was shown is there, nothing is half there, and with room the same command goes on: only a call whose outcome
    # found no room is left, and waits until the lease of its worker is over.
    finished = called("run", "turn.json")
    assert finished.code in (0, 1), finished
    kept = called("events").lines
    assert [line["position"] for line in kept][: len(seen)] == seen
    # Those without a position found no room in the journal, and were in the spool until now.
    assert {line["id"] for line in shown} <= {line["id"] for line in kept}
    states = [row["status"] for row in called("attempts").lines if "~d" not in row["key"]]
    assert len(states) == 40
    assert states.count("executed") >= 39
    assert called("verify").code == 0


@pytest.mark.parametrize("command", [["events"], ["run", TURN, "--tools", TOOLS]], ids=lambda command: command[0])
def test_a_reader_that_leaves(called: Called, tmp_path: Path, command: list[str | Path]) -> None:
    made(called)
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "engine.cli", *map(str, command)],
        cwd=tmp_path,
        env=environment(),
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    os.close(writing)
    # As for any program whose reader has seen enough: silence, and the code that a shell gives it.
    assert (done.returncode, done.stderr) == (141, b"")
    assert called("verify").code == 0


def test_nowhere_to_print(called: Called, tmp_path: Path) -> None:
    made(called)
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "engine.cli", "events"],
            cwd=tmp_path,
            env=environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert "No space left" in done.stderr


def test_hosts_to_allow_that_are_none(called: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALLJOURNAL_ALLOW_HOSTS", "wiki.intern, 10.0.0.0/99")
    check_refused(called("run", TURN, "--tools", TOOLS), 2, "CALLJOURNAL_ALLOW_HOSTS", "10.0.0.0/99")
