"""Several processes approve and resume one call at the same time, once each (APPROVAL-02), or fifty times."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, aclosing, contextmanager
from pathlib import Path

import pytest

from engine import CallContext, Engine, ToolCall, ToolRow
from events import Approved, Executed, Paused, Proposed, Resumed
from projections import verify
from tests.crash.approver import GatedBell
from tests.shape import ROOT

__all__ = ()

pytestmark = pytest.mark.anyio

CONTEXT = CallContext(user_id="u", message_id="m")
PROCESSES = 3
CROWD = 4
PRESSES = 50


@contextmanager
def approver(
    url: str, backend: str, name: str, key: str, effects: Path, times: int = 1
) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.crash.approver", url, backend, name, key, str(times)]
    environment = {**os.environ, "EFFECTS": str(effects)}
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def pressed(processes: list[subprocess.Popen[str]]) -> list[list[str]]:
    """Let every process go on at once; return what each says of its decision and of its resume."""
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    return [process.communicate(timeout=60)[0].splitlines() for process in processes]


async def test_case_approval_02_delivered_twice_on_two_processes(
    database_url: str, anyio_backend: str, tmp_path: Path
) -> None:
    effects = tmp_path / "effects"
    effects.touch()
    async with Engine.open(database_url, rows=[ToolRow(id="t1", name="gated_bell")], tools=[GatedBell]) as engine:
        for number in range(2):
            key = f"m:c{number}"
            wanted = ToolCall(id=f"c{number}", name="ring", arguments={"mark": key})
            async with aclosing(engine.execute(wanted, CONTEXT)) as stream:
                assert isinstance([event async for event in stream][-1], Paused)
            with ExitStack() as stack:
                processes = [
                    stack.enter_context(approver(database_url, anyio_backend, f"p{place}", key, effects))
                    for place in range(PROCESSES)
                ]
                told = pressed(processes)
            decisions, runs = zip(*told, strict=True)
            assert sorted(text.split()[0] for text in decisions) == ["Approved", "Refused", "Refused"]
            assert sorted(text.split()[0] for text in runs) == ["Executed", "Refused", "Refused"]
            assert all("cannot be" in text for text in (*decisions, *runs) if text.startswith("Refused"))
            kinds = [type(record.event) async for record in engine.log.read_stream(key, user_id="u")]
            assert kinds == [Proposed, Paused, Approved, Resumed, Executed]
        assert effects.read_text().split() == ["m:c0", "m:c1"]
        assert (await verify(engine.log)).problems == ()


async def test_of_two_hundred_approvals_from_four_processes_one_counts(
    database_url: str, anyio_backend: str, tmp_path: Path
) -> None:
    """One Approved, 199 clear refusals; what was approved runs once, wherever it is resumed."""
    effects = tmp_path / "effects"
    effects.touch()
    async with Engine.open(database_url, rows=[ToolRow(id="t1", name="gated_bell")], tools=[GatedBell]) as engine:
        async with aclosing(engine.execute(ToolCall(id="c", name="ring", arguments={"mark": "m"}), CONTEXT)) as stream:
            assert isinstance([event async for event in stream][-1], Paused)
        with ExitStack() as stack:
            processes = [
                stack.enter_context(approver(database_url, anyio_backend, f"p{place}", "m:c", effects, PRESSES))
                for place in range(CROWD)
            ]
            told = pressed(processes)
        decisions = [text for said in told for text in said[:PRESSES]]
        assert len(decisions) == CROWD * PRESSES == 200
        assert decisions.count("Approved") == 1
        refusals = [text for text in decisions if text != "Approved"]
        assert len(refusals) == 199
        clear = ("proposed/approved", "proposed/claimed", "executed/claimed")
        assert all(text.startswith("Refused call 'm:c' cannot be approved: it is ") for text in refusals)
        assert all(any(state in text for state in clear) for text in refusals)
        kinds = [type(record.event) async for record in engine.log.read_stream("m:c", user_id="u")]
        assert kinds == [Proposed, Paused, Approved, Resumed, Executed]
        assert sorted(said[-1].split()[0] for said in told) == ["Executed", "Refused", "Refused", "Refused"]
        assert effects.read_text().split() == ["m"]
        assert (await verify(engine.log)).problems == ()
