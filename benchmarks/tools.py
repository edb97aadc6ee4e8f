"""Every action of the tools that keep things, over ten thousand of what they keep: ``python -m benchmarks.tools``.

What is measured is the action, with its transaction; proposing and journalling its call is what ``.execute`` measures.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from benchmarks.command import main
from benchmarks.databases import Database
from benchmarks.figures import Figure
from benchmarks.loops import run_on
from benchmarks.scale import Scale
from engine.contract import Tool
from engine.tools.memory import Memory
from engine.tools.notes import Notes
from engine.tools.todo_list import TodoList
from tests.engine.tools.filling import MANY, fill, path_of, text_of, title_of
from tests.engine.tools.keeping import Run, opened, runner

__all__ = ("measure_tools",)

_GOAL: Final = 5.0
"""Milliseconds, on SQLite."""

_CALLS: Final = 20
"""A round's; a tiny run has fewer."""

_STEP: Final = 11

Sample = Callable[[int], dict[str, Any]]

_NOTES: Final[Mapping[str, Sample]] = {
    "note_view": lambda n: {"title": title_of(n)},
    "note_list": lambda n: {"after": title_of(n)},
    "note_search": lambda n: {"query": f"NUMBER {n:05}"},
    "note_history": lambda n: {"title": title_of(n)},
    "note_overwrite": lambda n: {"title": f"new {n}", "text": text_of(n)},
    "note_append": lambda n: {"title": title_of(n), "text": "one more line"},
    "note_str_replace": lambda n: {"title": title_of(n), "old_str": "number", "new_str": f"a number, {n}"},
    "note_insert": lambda n: {"title": title_of(n), "line_number": 2, "text": "a line between"},
    "note_undo": lambda n: {"title": f"new {n}", "version": 1},
    "note_delete": lambda n: {"title": title_of(n)},
}
_MEMORY: Final[Mapping[str, Sample]] = {
    "memory_view": lambda n: {"path": path_of(n)},
    "memory_view of a directory": lambda n: {"path": f"/d{n % 100:02}"},
    "memory_search": lambda n: {"query": f"NUMBER {n:05}"},
    "memory_search for what is everywhere": lambda n: {"query": "lambda"},  # noqa: ARG005
    "memory_search for what is nowhere": lambda n: {"query": f"nowhere {n}"},
    "memory_history": lambda n: {"path": path_of(n)},
    "memory_create": lambda n: {"path": f"/d{n % 100:02}/new/{n}", "file_text": text_of(n)},
    "memory_str_replace": lambda n: {"path": path_of(n), "old_str": "number", "new_str": f"a number, {n}"},
    "memory_insert": lambda n: {"path": path_of(n), "insert_line": 2, "insert_text": "a line between"},
    "memory_rename": lambda n: {"old_path": path_of(n), "new_path": f"/renamed/{n}"},
    "memory_delete": lambda n: {"path": f"/renamed/{n}"},
    "memory_restore": lambda n: {"path": f"/renamed/{n}"},
}
_TODOS: Final[Mapping[str, Sample]] = {
    "todo_list": lambda n: {"after": n},
    "todo_get": lambda n: {"todo_id": n},
    "todo_history": lambda n: {"todo_id": n},
    "todo_create": lambda n: {"title": f"new {n}", "priority": "high"},
    "todo_update": lambda n: {"todo_id": n, "title": f"changed {n}"},
    "todo_complete": lambda n: {"todo_id": n},
    "todo_reopen": lambda n: {"todo_id": n},
    "todo_delete": lambda n: {"todo_id": n, "recursive": True},
}
_TOOLS: Final[tuple[tuple[type[Tool], Mapping[str, Sample]], ...]] = (
    (Notes, _NOTES),
    (Memory, _MEMORY),
    (TodoList, _TODOS),
)


def measure_tools(database: Database, scale: Scale) -> list[Figure]:
    """Return how long each action takes over ten thousand notes, files and to-do items (a tiny run: fewer)."""
    figures: list[Figure] = []
    goal = _GOAL if database.name == "SQLite" else None
    for kind, samples in _TOOLS:
        url = database.fresh()
        taken = run_on("asyncio", _measured, url, kind, samples, scale)
        database.drop(url)
        for name, rounds in taken.items():
            figures += [
                Figure.of(f"{database.name}: {name}", "ms", [each.elapsed for each in rounds], goal, at_most=True),
                Figure.of(f"{database.name}: {name}", "ms of CPU", [each.processor for each in rounds]),
            ]
    return figures


class _Round(msgspec.Struct, frozen=True):
    """Milliseconds of one call: the median of those that passed, the mean of the processor's."""

    elapsed: float
    processor: float


async def _measured(url: str, kind: type[Tool], samples: Mapping[str, Sample], scale: Scale) -> dict[str, list[_Round]]:
    async with opened(url) as store:
        await fill(store, "ada", kind.name, many=min(MANY, scale.events))
        await store.transact(_analysed)
        run, taken = runner(kind, store), {}
        # All go through the same numbers, so that what one action has made or moved is there for the next.
        calls = min(_CALLS, scale.appends // 32)
        for name, sample in samples.items():
            gc.collect()
            rounds = [await _round(run, name, sample, turn * calls, calls) for turn in range(scale.rounds + 1)]
            taken[name] = rounds[1:]
        return taken


async def _round(run: Run, name: str, sample: Sample, first: int, calls: int) -> _Round:
    times, action = [], name.partition(" ")[0]
    began = time.process_time()
    for place in range(first, first + calls):
        arguments = sample(1 + _STEP * place)
        started = time.perf_counter()
        said = await run(action, **arguments)
        times.append(time.perf_counter() - started)
        assert isinstance(said, str), (name, said)
    processor = (time.process_time() - began) / calls
    return _Round(1000 * statistics.median(times), 1000 * processor)


def _analysed(connection: Any) -> None:
    connection.exec_driver_sql("ANALYZE")


if __name__ == "__main__":
    main(measure_tools)
