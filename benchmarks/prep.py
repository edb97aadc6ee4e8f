"""Rows of tools to function schemas, beside a reference that does the same from plain dicts.

Run as ``python -m benchmarks.prep [--reference FILE]``. ``load`` is what is done once per row version: its actions
are read. ``cold`` is what is done once per set of row versions: names, functions, the way back. ``warm`` is what every
later turn does.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import anyio

from benchmarks.command import main
from benchmarks.figures import Figure
from benchmarks.reference import Reference
from benchmarks.scale import Scale
from benchmarks.timing import alternate
from benchmarks.workloads import same_named_rows, tool_rows
from engine.actions import resolve_actions
from engine.context import CallContext
from engine.contract import Tool
from engine.engine import Engine
from engine.rows import ToolRow
from engine.schemas import Prepared
from engine.toolset import Member, Toolset

__all__ = ("measure_prep",)

_COLD = 3.0
_WARM = 200.0
_SAME_NAMED = 20.0
_ROWS = 50
_SAME_ROWS = 200
_Rows = dict[str, dict[str, Any]]


class _Configured(Tool):
    """A tool whose actions are in its row."""

    actions_in_config = True

    def execute_action(self, action_name: str, /, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def get_actions_metadata(self) -> Any:
        return []

    def get_config_requirements(self) -> dict[str, Any]:
        return {}


def measure_prep(scale: Scale, reference: Reference) -> list[Figure]:
    """Return the figures of 50 rows with 3 actions of 6 parameters, and of 200 rows that share all their names."""
    mixed = _figures(f"prep, {_ROWS}x3x6", tool_rows(_ROWS), _COLD, scale, reference)
    shared = same_named_rows(_SAME_ROWS)
    same = _figures(f"prep, {_SAME_ROWS} rows, all names shared", shared, _SAME_NAMED, scale, reference)
    return [*mixed, *same, *_warm_figures(scale, reference)]


def _figures(name: str, rows: _Rows, goal: float, scale: Scale, reference: Reference) -> list[Figure]:
    typed = _typed(rows)
    members = _load(typed)
    _compare(_cold(members), reference, rows)
    works: dict[str, Callable[[], object]] = {
        "reference": partial(reference.prepare, rows),
        "load": partial(_load, typed),
        "cold": partial(_cold, members),
        "cold, with the encoded bytes": lambda: _cold(members).encoded,
        "load and cold": lambda: _cold(_load(typed)),
    }
    samples = alternate(works, scale.rounds, scale.slice)
    figures = [Figure.of(f"{name}: {work}", "us", [1e6 * each for each in times]) for work, times in samples.items()]
    for work in ("cold", "load and cold"):
        ratios = [beside / own for own, beside in zip(samples[work], samples["reference"], strict=True)]
        figures.append(Figure.of(f"{name}: {work}", "x reference", ratios, goal if work == "cold" else None))
    return figures


def _warm_figures(scale: Scale, reference: Reference) -> list[Figure]:
    rows = tool_rows(_ROWS)
    beside = alternate({"reference": partial(reference.prepare, rows)}, scale.rounds, scale.slice)["reference"]
    own = anyio.run(_warm, _typed(rows), scale.rounds, scale.slice)
    ratios = [reference_time / own_time for own_time, reference_time in zip(own, beside, strict=True)]
    name = f"prep, {_ROWS}x3x6: warm, through the engine"
    return [
        Figure.of(name, "us", [1e6 * each for each in own]),
        Figure.of(name, "x reference", ratios, _WARM),
    ]


async def _warm(rows: list[ToolRow], rounds: int, slice_: float) -> list[float]:
    """Return the seconds of one ``prepare_tools_for_llm`` of unchanged rows, a sample a round."""
    tools = {row.name: type("Own", (_Configured,), {"name": row.name}) for row in rows}
    context = CallContext(user_id="u", tool_ids=tuple(row.id for row in rows))
    samples: list[float] = []
    async with Engine.open("null://", rows=rows, tools=list(tools.values())) as engine:
        first = await engine.prepare_tools_for_llm(context)
        assert len(first.names) == 3 * len(rows)
        for _ in range(rounds):
            calls, started = 0, time.thread_time()
            while (elapsed := time.thread_time() - started) < slice_:
                for _ in range(200):
                    await engine.prepare_tools_for_llm(context)
                calls += 200
            samples.append(elapsed / calls)
        assert await engine.prepare_tools_for_llm(context) is first
    return samples


def _typed(rows: _Rows) -> list[ToolRow]:
    return [
        ToolRow(
            id=key,
            name=row["name"],
            config={"actions": row["config"].get("actions") or {entry["name"]: entry for entry in row["actions"]}},
        )
        for key, row in rows.items()
    ]


def _load(rows: list[ToolRow]) -> tuple[Member, ...]:
    return tuple([Member.of(row, _Configured, resolve_actions(row, _Configured, [])) for row in rows])


def _cold(members: tuple[Member, ...]) -> Prepared:
    return Toolset(members).prepared("openai")


def _compare(prepared: Prepared, reference: Reference, rows: _Rows) -> None:
    functions, names = reference.prepare(rows)
    if prepared.functions != functions or prepared.names != names:
        raise SystemExit("the product prepares these rows otherwise than the reference: nothing to compare")


if __name__ == "__main__":
    main(beside=[measure_prep])
