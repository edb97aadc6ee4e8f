"""The hot path once more, written to be read: what a careful programmer writes first, with the standard library alone.

The product is measured beside it, and compared with it. A reference file given on the command line has the same
functions.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

__all__ = ("finish", "parse", "prepare")

_LIMIT = 64
_PARTS = ("query_params", "headers", "body", "parameters")
_FLAGS = ("filled_by_llm", "value", "required")
_PREVIEW = 2000
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_Names = dict[str, tuple[str, str]]


def prepare(rows: dict[str, dict[str, Any]]) -> tuple[list[dict[str, Any]], _Names]:
    """Return the function schemas of rows by key, and where each advertised name leads: (key, action's name)."""
    entries = [(key, row["name"], action) for key, row in rows.items() for action in _actions(row)]
    counts = Counter(action["name"] for _, _, action in entries)
    unique = {name[:_LIMIT] for name, count in counts.items() if count == 1}
    functions: list[dict[str, Any]] = []
    names: _Names = {}
    for key, tool, action in entries:
        name = action["name"][:_LIMIT]
        if name not in unique or name in names:
            name = _free_name(f"{tool}_{action['name']}", names, unique)
        names[name] = (key, action["name"])
        described = {"name": name, "description": action.get("description", "")}
        functions.append({"type": "function", "function": {**described, "parameters": _parameters(action)}})
    return functions, names


def parse(call: dict[str, Any], names: _Names) -> tuple[str, str, Any]:
    """Return a call's (key, action's name, arguments)."""
    arguments = call["arguments"]
    if isinstance(arguments, str):
        arguments = json.loads(arguments) if arguments.strip() else {}
    if call["name"] in names:
        key, action = names[call["name"]]
    else:
        action, _, key = call["name"].rpartition("_")
    return key, action, arguments


def finish(result: Any) -> tuple[bytes, str, str]:
    """Return what a tool returned as (bytes for the log, preview, status)."""
    clean = _without_control_characters(result)
    encoded = json.dumps(clean, ensure_ascii=False).encode()
    text = clean if isinstance(clean, str) else encoded.decode()
    preview = text if len(text) <= _PREVIEW else text[:_PREVIEW] + "..."
    is_error = isinstance(clean, dict) and (clean.get("status") == "error" or bool(clean.get("error")))
    return encoded, preview, "error" if is_error else "completed"


def _without_control_characters(value: Any) -> Any:
    if isinstance(value, str):
        return _CONTROL.sub("", value)
    if isinstance(value, dict):
        cleaned = _without_control_characters
        return {cleaned(key): cleaned(content) for key, content in value.items()}
    return [_without_control_characters(item) for item in value] if isinstance(value, list | tuple) else value


def _actions(row: dict[str, Any]) -> list[dict[str, Any]]:
    configured = row["config"].get("actions")
    actions = list(configured.values()) if configured else row["actions"]
    return [action for action in actions if action.get("active", True)]


def _parameters(action: dict[str, Any]) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    required: list[str] = []
    for part in _PARTS:
        for name, stated in action.get(part, {}).get("properties", {}).items():
            if stated.get("filled_by_llm", True):
                properties[name] = {keyword: content for keyword, content in stated.items() if keyword not in _FLAGS}
                if stated.get("required") is True and name not in required:
                    required.append(name)
    return {"type": "object", "properties": properties, "required": required}


def _free_name(wanted: str, names: _Names, unique: set[str]) -> str:
    stem = re.sub(r"[^a-zA-Z0-9_-]+", "_", wanted).strip("_")[:_LIMIT]
    name, number = stem, 0
    while name in names or name in unique:
        number += 1
        suffix = f"_{number}"
        name = stem[: _LIMIT - len(suffix)] + suffix
    return name
