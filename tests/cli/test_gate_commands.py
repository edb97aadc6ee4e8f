"""``approvals``, ``approve``, ``deny``, ``resume`` and ``run --approve``: deciding from a shell."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import Called, check_refused, environment

__all__ = ()

GATED = """
from engine import Tool

class Gated(Tool):
    def get_actions_metadata(self):
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
        return [{"name": "launch", "description": "", "parameters": schema, "require_approval": True}]
    def get_config_requirements(self):
        return {}
    def execute_action(self, action_name, /, **kwargs):
        with open("launched.txt", "a") as file:
            print(kwargs, file=file)
        return {"launched": kwargs}
"""


@pytest.fixture
def turn(called: Called, tmp_path: Path) -> Path:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "gated.py").write_text(GATED)
    calls = [{"type": "tool_use", "id": f"t{n}", "name": "launch", "input": {"n": n}} for n in (1, 2)]
    (tmp_path / "turn.json").write_text(json.dumps({"content": calls}))
    return tmp_path / "turn.json"


@pytest.fixture
def waiting(called: Called, turn: Path, database_url: str) -> str:
    """A journal in which two calls wait: the keys are m:t1 and m:t2."""
    done = called("run", turn, "--tools", "own", "--message", "m", "--database", database_url)
    assert (done.code, [line["type"] for line in done.lines[1::2]]) == (1, ["paused", "paused"])
    return database_url


def launched(tmp_path: Path) -> list[str]:
    file = tmp_path / "launched.txt"
    return file.read_text().splitlines() if file.exists() else []


def test_case_approval_03_what_waits_is_listed_approved_and_run_by_other_processes(
    called: Called, waiting: str, tmp_path: Path
) -> None:
    listed = called("approvals", "--database", waiting)
    assert (listed.code, listed.err) == (0, "")
    assert [(line["key"], line["arguments"], line["state"]) for line in listed.lines] == [
        ("m:t1", {"n": 1}, "awaiting_approval"),
        ("m:t2", {"n": 2}, "awaiting_approval"),
    ]
    first = listed.lines[0]
    assert (first["tool_name"], first["action_name"], first["rule"]) == ("gated", "launch", "require_approval")
    assert first["reason"]
    assert first["seconds"] >= 0
    assert first["expires_at"] > first["since"]
    approved = called("approve", "m:t2", "--database", waiting, "--by", "alice", "--comment", "go")
    assert (approved.code, approved.lines[0]["type"]) == (0, "approved")
    assert (approved.lines[0]["by"], approved.lines[0]["comment"]) == ("alice", "go")
    states = {
        line["key"]: (line["state"], line["approved_by"]) for line in called("approvals", "--database", waiting).lines
    }
    assert states == {"m:t1": ("awaiting_approval", None), "m:t2": ("approved", "alice")}
    assert launched(tmp_path) == []
    run = called("resume", "m:t2", "--database", waiting, "--tools", "own")
    assert (run.code, [line["type"] for line in run.lines]) == (0, ["executed"])
    assert launched(tmp_path) == ["{'n': 2}"]
    check_refused(called("resume", "m:t2", "--database", waiting, "--tools", "own"), 2, "m:t2", "executed")
    assert [line["key"] for line in called("approvals", "--database", waiting).lines] == ["m:t1"]
    assert called("verify", "--database", waiting).lines[0]["ok"] is True


def test_people_see_whole_arguments_and_what_to_type(called: Called, waiting: str) -> None:
    done = called("--no-json", "approvals", "--database", waiting)
    assert done.code == 0
    assert '{"n":1}' in done.out
    assert "  calljournal approve m:t1" in done.out
    assert "calls without a user" in done.out
    told = called("--no-json", "approve", "m:t1", "--database", waiting, "--by", "alice")
    assert "calljournal resume m:t1" in told.out
    assert "approved by alice" in called("--no-json", "approvals", "--database", waiting).out


def test_nothing_waits(called: Called, tmp_path: Path) -> None:
    check_refused(called("approvals"), 3, "there is no journal")
    assert not (tmp_path / "journal.db").exists()
    check_refused(called("approve", "m:t1"), 3, "there is no journal")
    assert not (tmp_path / "journal.db").exists()
    assert called("migrate").code == 0
    assert (called("approvals").code, called("approvals").out) == (0, "")
    assert called("--no-json", "approvals").out == "nothing waits\n"


def test_case_approval_06_edited_arguments_are_checked_and_run(called: Called, waiting: str, tmp_path: Path) -> None:
    common = ("--database", waiting, "--tools", "own", "--by", "alice")
    check_refused(called("approve", "m:t1", "--edit", '{"n": "many"}', *common), 2, '"n"', "still waits")
    check_refused(called("approve", "m:t1", "--edit", "{n: 4}", *common), 2, "--edit", "no JSON")
    check_refused(called("approve", "m:t1", "--edit", "[4]", *common), 2, "--edit", "one JSON object")
    assert called("approvals", "--database", waiting).lines[0]["state"] == "awaiting_approval"
    approved = called("approve", "m:t1", "--edit", '{"n": 4}', *common)
    assert (approved.code, approved.lines[0]["arguments"]) == (0, {"n": 4})
    assert called("approvals", "--database", waiting).lines[0]["arguments"] == {"n": 4}
    assert called("resume", "m:t1", "--database", waiting, "--tools", "own").code == 0
    emptied = called("approve", "m:t2", "--edit", "{}", *common)
    assert emptied.lines[0]["arguments"] == {}
    assert called("resume", "m:t2", "--database", waiting, "--tools", "own").code == 0
    assert launched(tmp_path) == ["{'n': 4}", "{}"]


def test_case_approval_07_a_denial_has_its_reason(called: Called, waiting: str, tmp_path: Path) -> None:
    denied = called("deny", "m:t1", "--reason", "wrong bay, ask me first", "--by", "bob", "--database", waiting)
    assert (denied.code, denied.lines[0]["type"]) == (0, "denied")
    assert (denied.lines[0]["by"], denied.lines[0]["reason"]) == ("bob", "rejected")
    assert "wrong bay, ask me first" in denied.lines[0]["message"]
    for again in (("approve", "m:t1"), ("deny", "m:t1"), ("resume", "m:t1", "--tools", "own")):
        check_refused(called(*again, "--database", waiting), 2, "m:t1", "denied")
    assert launched(tmp_path) == []


def test_no_other_tenant_decides_and_none_learns_that_a_call_is_there(called: Called, waiting: str) -> None:
    for command in (("approve", "m:t1"), ("deny", "m:t1"), ("resume", "m:t1", "--tools", "own")):
        theirs = called(*command, "--user", "eve", "--database", waiting)
        unknown = called(command[0], "m:none", *command[2:], "--user", "eve", "--database", waiting)
        check_refused(theirs, 2, "there is no call")
        assert theirs.err.replace("m:t1", "m:none") == unknown.err
    assert called("approvals", "--user", "eve", "--database", waiting).out == ""
    assert len(called("approvals", "--all-tenants", "--database", waiting).lines) == 2
    check_refused(called("approvals", "--all-tenants", "--user", "eve", "--database", waiting), 2, "--all-tenants")


def test_a_call_of_an_unknown_tool_is_left_alone(called: Called, waiting: str) -> None:
    """The engine would record that its tool is gone; a mistyped command must not."""
    assert called("approve", "m:t1", "--database", waiting).code == 0
    check_refused(called("resume", "m:t1", "--database", waiting), 2, "gated.launch", "--tools", "left as it is")
    assert called("approvals", "--database", waiting).lines[0]["state"] == "approved"
    assert called("resume", "m:t1", "--database", waiting, "--tools", "own").code == 0


def test_the_keys_and_names_of_nobody(called: Called, waiting: str) -> None:
    check_refused(called("approve", "m:t1", "--by", " ", "--database", waiting), 2, "by")
    check_refused(called("approve", "m:t\x00", "--database", waiting), 2)
    check_refused(called("approve", "m:t1", "--remember", "soon", "--database", waiting), 2, "--remember", "1h30m")
    check_refused(called("approve", "m:t1", "--remember", "0s", "--database", waiting), 2, "--remember")
    check_refused(called("approve"), 2, "KEY")


def test_remembered_approvals_are_rules(called: Called, waiting: str, turn: Path, tmp_path: Path) -> None:
    approved = called("approve", "m:t1", "--remember", "1h30m", "--by", "alice", "--database", waiting)
    assert approved.code == 0
    (rule,) = called("rules", "list", "--database", waiting).lines
    assert (rule["decision"], rule["verdict"], rule["created_by"]) == ("m:t1", "allow", "alice")
    assert rule["id"] == approved.lines[0]["id"]
    again = called("run", turn, "--tools", "own", "--message", "m2", "--database", waiting)
    assert (again.code, [line["type"] for line in again.lines[1::2]]) == (0, ["executed", "executed"])
    assert len(launched(tmp_path)) == 2
    assert called("rules", "revoke", rule["id"], "--database", waiting).code == 0
    assert called("run", turn, "--tools", "own", "--message", "m3", "--database", waiting).code == 1


def test_approving_all_of_a_run(called: Called, turn: Path, database_url: str, tmp_path: Path) -> None:
    done = called("run", turn, "--tools", "own", "--message", "m", "--approve", "always", "--database", database_url)
    assert (done.code, done.err) == (0, "")
    assert [line["type"] for line in done.lines] == ["proposed", "paused", "approved", "executed"] * 2
    assert done.lines[2]["comment"] == "run --approve always"
    assert launched(tmp_path) == ["{'n': 1}", "{'n': 2}"]
    again = called("run", turn, "--tools", "own", "--message", "m", "--approve", "always", "--database", database_url)
    assert (again.code, [line["type"] for line in again.lines]) == (0, ["proposed", "executed"] * 2)
    assert len(launched(tmp_path)) == 2


def test_a_run_goes_on_with_what_was_approved_meanwhile(
    called: Called, waiting: str, turn: Path, tmp_path: Path
) -> None:
    assert called("approve", "m:t1", "--database", waiting).code == 0
    run = ("run", turn, "--tools", "own", "--message", "m", "--database", waiting)
    assert [line["type"] for line in called(*run).lines] == ["proposed", "paused"] * 2
    done = called(*run, "--approve", "always")
    assert [line["type"] for line in done.lines] == [
        "proposed",
        "paused",
        "executed",
        "proposed",
        "paused",
        "approved",
        "executed",
    ]
    assert done.code == 0
    assert len(launched(tmp_path)) == 2


def test_asking_needs_a_terminal_and_somebody_who_watches(called: Called, turn: Path, tmp_path: Path) -> None:
    check_refused(called("run", turn, "--tools", "own", "--approve", "ask"), 2, "--approve ask needs a terminal")
    check_refused(called("run", turn, "--tools", "own", "--approve", "always", "--headless"), 2, "--headless")
    check_refused(called("run", turn, "--tools", "own", "--approve", "perhaps"), 2, "--approve")
    assert not (tmp_path / "journal.db").exists()


class Terminal:
    """The command on a terminal of its own, its answers typed when it asks."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.master, slave = pty.openpty()
        self.said = ""
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "engine.cli", *arguments],
            cwd=folder,
            env=environment(COLUMNS="200"),
            stdin=slave,
            stdout=subprocess.PIPE,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)

    def read_until(self, text: str) -> None:
        deadline = time.monotonic() + 30
        while text not in self.said:
            assert time.monotonic() < deadline, self.said
            ready, _, _ = select.select([self.master], [], [], 0.5)
            if ready:
                try:
                    self.said += os.read(self.master, 65536).decode()
                except OSError:
                    break
        assert text in self.said, self.said
        self.said = self.said.partition(text)[2]

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def end(self) -> tuple[int, list[dict[str, Any]]]:
        out, _ = self.process.communicate(timeout=30)
        os.close(self.master)
        return self.process.returncode, [json.loads(line) for line in out.splitlines()]


RUN: Sequence[str] = ("run", "turn.json", "--tools", "own", "--message", "m", "--approve", "ask", "--json")


def test_a_person_is_asked_on_the_terminal(turn: Path, tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, *RUN)
    terminal.read_until('gated.launch wants to run with {"n":1}')
    terminal.read_until("[l]ater: ")
    terminal.type("what?\n")
    terminal.read_until("answer y, n, e or l")
    terminal.read_until("[l]ater: ")
    terminal.type("e\n")
    terminal.read_until("one JSON object: ")
    terminal.type('{"n": "x"}\n')
    terminal.read_until("still waits")
    terminal.read_until("[l]ater: ")
    terminal.type("e\n")
    terminal.read_until("one JSON object: ")
    terminal.type('{"n": 5}\n')
    terminal.read_until('{"n":2}')
    terminal.read_until("[l]ater: ")
    terminal.type("n\n")
    terminal.read_until("may be empty): ")
    terminal.type("not today\n")
    code, lines = terminal.end()
    assert code == 1
    assert [line["type"] for line in lines] == [
        "proposed",
        "paused",
        "approved",
        "executed",
        "proposed",
        "paused",
        "denied",
    ]
    assert lines[2]["arguments"] == {"n": 5}
    assert "not today" in lines[-1]["message"]
    assert launched(tmp_path) == ["{'n': 5}"]


def test_the_end_of_the_input_leaves_what_waits(turn: Path, tmp_path: Path, called: Called) -> None:
    terminal = Terminal(tmp_path, *RUN)
    terminal.read_until("[l]ater: ")
    terminal.type("y\n")
    terminal.read_until('{"n":2}')
    terminal.read_until("[l]ater: ")
    terminal.type("\x04")
    code, lines = terminal.end()
    assert (code, [line["type"] for line in lines][-2:]) == (1, ["proposed", "paused"])
    assert [line["key"] for line in called("approvals").lines] == ["m:t2"]
    assert launched(tmp_path) == ["{'n': 1}"]


def test_a_question_can_be_interrupted(turn: Path, tmp_path: Path, called: Called) -> None:
    terminal = Terminal(tmp_path, *RUN)
    terminal.read_until("[l]ater: ")
    terminal.process.send_signal(signal.SIGINT)
    code, _ = terminal.end()
    assert code == 130
    assert [line["key"] for line in called("approvals").lines] == ["m:t1"]
    assert launched(tmp_path) == []
