"""What the hot path is measured on: rows of tools and their calls, made from a seed, as plain JSON content.

The shapes are those that ``benchmarks.plain`` and a reference file read: a row is ``{"id", "name", "config",
"actions"}``; a tool whose actions are its own to configure (``api_tool``) has them in ``config["actions"]``, by name,
spread over the parts of a request.
"""

from __future__ import annotations

import json
import random
from typing import Any

__all__ = (
    "CALL_SIZES",
    "call_arguments",
    "result_object",
    "result_text",
    "routes",
    "same_named_rows",
    "tool_rows",
    "with_control_characters",
)

CALL_SIZES: tuple[tuple[str, int], ...] = (("200 B", 200), ("4 KB", 4096), ("200 KB", 200_000))

_SEED = 7
_WORDS: tuple[str, ...] = ("amber", "basin", "cedar", "delta", "ember", "fjord", "grove", "harbour", "kiln", "lagoon")
_VERBS: tuple[str, ...] = ("add", "check", "close", "count", "draft", "file", "find", "hold", "lift", "mark", "weigh")
_NOUNS: tuple[str, ...] = (
    "bay",
    "bill",
    "box",
    "card",
    "case",
    "crate",
    "desk",
    "gate",
    "lane",
    "note",
    "order",
    "rack",
)
_SHARED = ("find", "fetch_page", "list_items", "add_item", "post_note", "drop_item", "run_query", "read_file")
_API = "api_tool"


def tool_rows(count: int, actions: int = 3, parameters: int = 6) -> dict[str, dict[str, Any]]:
    """Return rows by key; a fifth of their actions share a name with others, every fifth row is an ``api_tool``."""
    rng = random.Random(_SEED + count)
    sharing = sorted(rng.sample(range(count), min(count, round(count * actions * 0.2))))
    kinds = max(1, min(len(_SHARED), len(sharing) // 2))
    shared = {row: _SHARED[place % kinds] for place, row in enumerate(sharing)}
    rows: dict[str, dict[str, Any]] = {}
    for number in range(count):
        names = [_action_name(number, place) for place in range(actions)]
        if number in shared:
            names[0] = shared[number]
        is_api = number % 5 == 4
        entries = [_action(rng, name, parameters, is_api=is_api) for name in names]
        name = _API if is_api else f"depot {number}: {_NOUNS[number % len(_NOUNS)]}"
        rows[str(number)] = _row(number, name, entries, is_api=is_api)
    return rows


def same_named_rows(count: int, parameters: int = 6) -> dict[str, dict[str, Any]]:
    """Return rows of one tool, all with the same three actions, so that only a number can tell their names apart."""
    rng = random.Random(_SEED - count)
    names = ("find", "fetch_page", "list_items")
    return {
        str(number): _row(number, "mcp_tool", [_action(rng, name, parameters) for name in names])
        for number in range(count)
    }


def call_arguments(size: int) -> dict[str, Any]:
    """Return arguments whose JSON text has about ``size`` bytes: small flat ones, a nested report, or one long text."""
    if size <= 1000:
        arguments: dict[str, Any] = {
            "query": "crates weighed last quarter, by lane",
            "limit": 25,
            "order": "newest",
            "filters": ["lane:north", "year:2026"],
            "with_archive": False,
            "note": "",
        }
        arguments["note"] = "n" * max(0, size - len(json.dumps(arguments)))
        return arguments
    rng = random.Random(size)
    if size <= 20_000:
        arguments = {"title": "Weekly report", "format": "pdf", "sections": []}
        while len(json.dumps(arguments)) < size:
            arguments["sections"].append(_section(rng, len(arguments["sections"])))
        return arguments
    code = _code(rng, size)
    excess = len(json.dumps({"kind": "code", "filename": "main.py", "code": code})) - size
    return {"kind": "code", "filename": "main.py", "code": code[: size - int(excess * size / (size + excess))]}


def routes(count: int = 150) -> dict[str, tuple[str, str]]:
    """Return where advertised names lead, among them ``create_artifact``."""
    names = {f"{_action_name(number, 0)}x": (str(number), f"act_{number}") for number in range(count)}
    return {**names, "create_artifact": ("artifacts", "create_artifact")}


def result_text(size: int) -> str:
    """Return text of so many characters, as a file of code has it: every line ends, many words are quoted."""
    part = _code(random.Random(size), min(size, 100_000))
    return (part * (size // len(part) + 1))[:size]


def with_control_characters(text: str) -> str:
    """Return a text in which each thousandth character is NUL instead."""
    lines = [text[start : start + 999] for start in range(0, len(text), 1000)]
    return "\0".join(lines)[: len(text)]


def result_object(size: int) -> dict[str, Any]:
    """Return an object of about so many bytes, as a search has it: a status, and many small rows."""
    rng = random.Random(size)
    rows: list[dict[str, Any]] = []
    length = 0
    while length < size:
        row = {"id": len(rows), "title": _sentence(rng, 6), "url": f"https://example.test/d/{len(rows)}"}
        rows.append({**row, "snippet": _sentence(rng, 25), "score": round(rng.random(), 4), "tags": ["a", "b"]})
        length += len(str(rows[-1])) + 2
    return {"status": "ok", "error": None, "results": rows}


def _row(number: int, name: str, entries: list[dict[str, Any]], *, is_api: bool = False) -> dict[str, Any]:
    config = {"actions": {entry["name"]: entry for entry in entries}} if is_api else {}
    return {"id": f"row-{number}", "name": name, "config": config, "actions": [] if is_api else entries}


def _action(rng: random.Random, name: str, parameters: int, *, is_api: bool = False) -> dict[str, Any]:
    properties = {f"{_WORDS[place % len(_WORDS)]}_{place}": _property(rng, place) for place in range(parameters)}
    entry = {"name": name, "description": _sentence(rng, 14), "active": True, "require_approval": False}
    if not is_api:
        return {**entry, "parameters": {"type": "object", "properties": properties}}
    items = list(properties.items())
    parts = {"query_params": items[:2], "headers": items[2:3], "body": items[3:]}
    request = {part: {"type": "object", "properties": dict(content)} for part, content in parts.items()}
    return {**entry, "url": f"https://api.example.test/v1/{name}", "method": "POST", **request}


def _property(rng: random.Random, place: int) -> dict[str, Any]:
    """Return a property as a stored action has it: stamped, one in six hidden from the model and set by the owner."""
    stamp = {"description": _sentence(rng, 8), "filled_by_llm": True, "value": ""}
    kinds: tuple[dict[str, Any], ...] = (
        {"type": "string", **stamp, "required": True},
        {"type": "integer", **stamp, "minimum": 1, "maximum": 100, "required": False},
        {"type": "boolean", **stamp, "required": False},
        {"type": "string", **stamp, "enum": ["up", "down", "none"], "required": True},
        {"type": "array", **stamp, "items": {"type": "string"}},
        {**stamp, "type": "string", "filled_by_llm": False, "value": f"fixed-{rng.choice(_WORDS)}", "required": True},
    )
    return kinds[place % len(kinds)]


def _section(rng: random.Random, page: int) -> dict[str, Any]:
    points = [_sentence(rng, 6) for _ in range(3)]
    return {"heading": _sentence(rng, 4), "body": _sentence(rng, 30), "points": points, "page": page}


def _code(rng: random.Random, size: int) -> str:
    lines: list[str] = []
    while sum(map(len, lines)) < size:
        a, b = rng.choice(_WORDS), rng.choice(_WORDS)
        lines += [f"    {a}_{number} = weigh(\"{b}\", '{a}', [{number}, None])  # {b}\n" for number in range(40)]
    return "".join(lines)[:size]


def _sentence(rng: random.Random, words: int) -> str:
    return " ".join(rng.choice(_WORDS) for _ in range(words)).capitalize() + "."


def _action_name(row: int, place: int) -> str:
    return f"{_VERBS[(row + place) % len(_VERBS)]}_{_NOUNS[(3 * row + place) % len(_NOUNS)]}_{row}_{place}"
