"""Ctrl-C and SIGTERM: one line that says how to go on, exit code 130, and nothing left in flight."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.command import EXAMPLES, Called, environment

SLOW = """
import anyio
from engine import Tool

class Slow(Tool):
    def get_actions_metadata(self):
        return [{"name": "wait", "description": "", "parameters": {"type": "object"}}]
    def get_config_requirements(self):
        return {}
    async def execute_action(self, action_name, /, **kwargs):
        await anyio.sleep(60)
"""


@contextmanager
def running(cwd: Path, *arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "engine.cli", *map(str, arguments)],
        cwd=cwd,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def ended(process: subprocess.Popen[str], number: signal.Signals) -> tuple[int, str, str]:
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    return process.returncode, out, err


def test_following_sees_what_another_process_appends(called: Called, database_url: str, tmp_path: Path) -> None:
    turn = ("run", EXAMPLES / "turn.json", "--tools", EXAMPLES / "tools", "--database", database_url)
    assert called(*turn).code == 0
    with running(tmp_path, "events", "--follow", "--database", database_url) as process:
        assert process.stdout is not None
        first = [json.loads(process.stdout.readline())["position"] for _ in range(4)]
        assert called(*turn, "--message", "m2").code == 0
        assert called(*turn, "--message", "m3", "--user", "alice").code == 0
        more = [json.loads(process.stdout.readline()) for _ in range(4)]
        assert first + [line["position"] for line in more] == list(range(1, 9))
        assert {line["message_id"] for line in more} == {"m2"}
        assert ended(process, signal.SIGINT) == (
            130,
            "",
            "calljournal: stopped at position 8; --after 8 goes on from here\n",
        )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_call_is_recorded(called: Called, tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "slow.py").write_text(SLOW)
    call = {"type": "tool_use", "id": "t1", "name": "wait", "input": {}}
    (tmp_path / "turn.json").write_text(json.dumps({"id": "m1", "content": [call, call | {"id": "t2"}]}))
    with running(tmp_path, "run", "turn.json", "--tools", "own") as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["type"] == "proposed"
        code, out, err = ended(process, number)
    assert (code, out) == (130, "")
    assert err.count("\n") == 1
    assert "calljournal attempts --message m1" in err
    (row,) = called("attempts", "--message", "m1").lines
    assert (row["status"], row["call_id"]) == ("failed", "t1")
    assert called("verify").code == 0
