"""Ten thousand notes, files and to-do items of one user, among another's, as the tools would have kept them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import insert

from engine.schema import note_history, notes
from engine.text_index import signature
from engine.tool_schema import memory_files, memory_history, text_index, todo_history, todos, tool_ledgers
from events.keys import tenant_column
from events.store import Store

__all__ = ("MANY", "fill", "path_of", "text_of", "title_of")

MANY: Final = 10_000
_NOW: Final = datetime(2030, 1, 1, tzinfo=UTC)


def path_of(number: int) -> str:
    """Return a file's path: a hundred directories, a hundred files in each."""
    return f"/d{number % 100:02}/f{number:05}.md"


def title_of(number: int) -> str:
    """Return a note's title."""
    return f"note {number:05}"


def text_of(number: int) -> str:
    """Return some lines about nothing, different for each number; each has its number once."""
    words = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda")
    shuffled = " ".join(words[(number * step + step) % len(words)] for step in range(1, 30))
    return f"This is number {number:05}.\n{shuffled}\n"


async def fill(store: Store, user: str, *tools: str, many: int = MANY) -> None:
    """Keep ``many`` of what each tool keeps, under the row id ``t1``.

    :param tools: ``notes``, ``memory``, ``todo_list``
    """
    rows: dict[Any, list[dict[str, Any]]] = {}
    for tool in tools:
        rows.update(_FILLINGS[tool](many))
    size = len(text_of(0).encode())
    sums = {"token": "filled", "entries": many, "size": many * size, "past": many * size, "last": many}

    def work(connection: Any) -> None:
        owner = {"tenant": tenant_column(user), "tool_id": "t1"}
        others = [{"tenant": tenant_column(f"{user} {n}"), "tool_id": "t1"} | sums for n in range(500)]
        connection.execute(insert(tool_ledgers), [owner | sums, *others])
        for table, contents in rows.items():
            space = {"tenant": tenant_column(user)} if table is text_index else owner
            for start in range(0, len(contents), 2000):
                connection.execute(insert(table), [space | row for row in contents[start : start + 2000]])

    await store.transact(work)


def _notes(many: int) -> dict[Any, list[dict[str, Any]]]:
    kept: list[dict[str, Any]] = [{"title": title_of(n), "content": text_of(n), "version": 1} for n in range(many)]
    return {
        notes: [row | {"created_at": _NOW, "updated_at": _NOW} for row in kept],
        note_history: [row | {"changed_at": _NOW, "by_call": "m:c"} for row in kept],
        text_index: [_indexed("notes:t1", row["title"], row["content"]) for row in kept],
    }


def _memory(many: int) -> dict[Any, list[dict[str, Any]]]:
    texts = [(path_of(n), text_of(n)) for n in range(many)]
    kept = [{"path": path, "content": text, "size": len(text), "version": 1} for path, text in texts]
    return {
        memory_files: [row | {"created_at": _NOW, "updated_at": _NOW} for row in kept],
        memory_history: [row | {"changed_at": _NOW, "conversation_id": None, "by_call": "m:c"} for row in kept],
        text_index: [_indexed("memory:t1", path, text) for path, text in texts],
    }


def _todos(many: int) -> dict[Any, list[dict[str, Any]]]:
    item = {"done": False, "priority": 1, "due_at": None, "version": 1, "created_at": _NOW, "updated_at": _NOW}
    past = {"version": 1, "definition": '{"number":1,"title":"x"}', "changed_at": _NOW, "by_call": "m:c"}
    return {
        todos: [
            item | {"number": n, "title": f"item {n}", "parent": n - n % 10 + 1 if n % 10 > 1 else None}
            for n in range(1, many + 1)
        ],
        todo_history: [past | {"number": n} for n in range(1, many + 1)],
    }


def _indexed(space: str, key: str, text: str) -> dict[str, Any]:
    return {"space": space, "key": key, "part": 0, **signature(key.encode(), text.casefold().encode())}


_FILLINGS: Final = {"notes": _notes, "memory": _memory, "todo_list": _todos}
