"""Bytes that are no text, and numbers beyond all measure: one line, exit code 2."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import Called, check_refused
from tests.cli.test_gate_commands import GATED

__all__ = ()

# How an argument's byte that is no UTF-8 reaches a program.
BYTE = "m:t0\udcff"


@pytest.mark.parametrize(
    "arguments",
    [
        ("approve", BYTE),
        ("deny", BYTE),
        ("resume", BYTE),
        ("approve", "m:t0", "--edit", BYTE),
        ("approve", "m:t0", "--by", BYTE),
        ("rules", "show", BYTE),
        ("rules", "revoke", BYTE),
        ("rules", "add", "deny", "--message", BYTE),
        ("events", "--key", BYTE),
        ("events", "--after", "9" * 5000),
        ("approvals", "--user", BYTE),
    ],
)
def test_one_line_for_each(called: Called, arguments: tuple[str, ...]) -> None:
    assert called("migrate").code == 0
    check_refused(called(*arguments), 2)


def test_what_a_call_is_named_by_its_model_is_not_obeyed_by_the_terminal(called: Called, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "gated.py").write_text(GATED)
    name = "\x1b[2J\u202e\r\nt1"
    (tmp_path / "turn.json").write_text(
        json.dumps({"content": [{"type": "tool_use", "id": name, "name": "launch", "input": {"n": 1}}]})
    )
    assert called("run", "turn.json", "--tools", "own", "--message", "m").code == 1
    for command in (("approvals",), ("approve", f"m:{name}"), ("resume", f"m:{name}", "--tools", "own")):
        done = called("--no-json", *command)
        assert (done.code, done.err) == (0, "")
        assert [letter for letter in "\x1b\u202e\r" if letter in done.out] == []
