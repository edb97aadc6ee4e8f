"""What can be seen of one call after a fault, and what of it must not be."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from engine import ToolCall
from projections import AttemptRow
from tests.crash.fault_paths import Path

__all__ = ("Sight", "faults_in")

_NOT_RUN: Final = re.compile(r"not (been )?run\b|no effect|(not|never) (been )?started")
_ENDS: Final = ("Paused", "Denied", "Executed", "Failed")


class Sight(msgspec.Struct, frozen=True, kw_only=True):
    """One call as it looks.

    :ivar row: its state; None: the log has nothing of it
    :ivar stream: the kinds of its events
    :ivar effects: the argument with which each run of its tool left its mark
    :ivar told: what a model is told of it; ``succeeds``: as of a success
    """

    row: AttemptRow | None
    stream: tuple[str, ...]
    effects: tuple[int, ...]
    told: str
    succeeds: bool


def faults_in(sight: Sight, path: Path, call: ToolCall, ended: bool) -> Iterator[str]:
    """Yield what must not be; ``ended``: somebody has carried on until nothing more was to be done."""
    yield from _of_its_runs(sight, path, call)
    yield from _of_its_answer(sight, call)
    if ended:
        if sight.row is None or sight.row.attempt.phase is not None:
            yield "it has not come to an end"
        last = next((kind for kind in reversed(sight.stream) if kind in _ENDS), None)
        if last not in path.ends:
            yield f"it ended as {last}, not as {' or '.join(sorted(path.ends))}"


def _of_its_runs(sight: Sight, path: Path, call: ToolCall) -> Iterator[str]:
    name = call.name or ""
    if len(sight.effects) > 1 and not name.endswith("again"):
        yield "its tool ran more than once"
    if not sight.effects:
        return
    if set(sight.effects) != {(path.edited or {"n": 1})["n"]}:
        yield "its tool ran with other arguments than it was allowed to"
    if sight.row is None:
        yield "its tool ran before the call was proposed"
    if path.headless or name == "client":
        yield "its tool ran"
    if name.startswith("gated") and not {"Approved", "Resumed"} <= set(sight.stream):
        yield "its tool ran without approval and claim"


def _of_its_answer(sight: Sight, call: ToolCall) -> Iterator[str]:
    executed = sight.row is not None and sight.row.status in ("executed", "confirmed")
    if sight.succeeds != executed:
        yield f"the model is told of a {'success' if sight.succeeds else 'failure'}"
    if executed and call.name != "client" and not sight.effects:
        yield "it is executed, and its tool never ran"
    if executed and not sight.told.endswith("done" if call.name == "client" else f"did {sight.effects[-1]}"):
        yield "the model is told something else than the tool's result"
    if sight.effects and _NOT_RUN.search(sight.told):
        yield "its tool ran, and the model is told that it did not"
