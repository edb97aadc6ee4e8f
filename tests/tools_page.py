"""The part of docs/tools.md that is made from the code: ``python -m tests.tools_page``, or ``make tools-page``.

What stands above the mark is written by hand and stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import anyio

from engine.actions import Action, resolve_actions
from engine.contract import Scope, Tool
from engine.discovery import ToolManager
from engine.loading import LoadFailure, actions_metadata
from engine.rows import ToolRow
from tests.shape import ROOT

__all__ = ("PAGE", "generated", "tool_names")

PAGE: Final = ROOT / "docs/tools.md"
MARK: Final = "<!-- From here on: made from the code by `make tools-page`. -->\n"
_PAGES: Final = {
    **dict.fromkeys(("notes", "todo_list"), "memory"),
    **dict.fromkeys(("brave", "cryptoprice", "duckduckgo", "ntfy", "telegram"), "search_and_messages"),
}
"""The pages of tools that share one."""

_WORDS: Final = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "object": "object",
    "array": "list",
    "null": "null",
}


def tool_names() -> list[str]:
    """Return the names of the built-in tools, internal ones too."""
    return sorted(path.stem for path in (ROOT / "engine/tools").glob("[a-z]*.py"))


async def generated(page: str) -> str:
    """Return the page with the part below the mark made anew."""
    manager = ToolManager()
    sections = [await _section(name, manager.load_tool(name)) for name in tool_names()]
    return page.partition(MARK)[0] + MARK + "\n" + "\n\n".join([_HEAD, *sections]) + "\n"


_HEAD: Final = """\
## The built-in tools

Of each action: what it does to the world (effect), whether running it twice is as good as once, whether a person is
asked first, its parameters with the bounds of their values. `...` in an error stands for the particulars. Every tool
answers an action that it does not have with an error as well."""


async def _section(name: str, tool: type[Tool]) -> str:
    parts = [f"### `{name}`", f"{tool.description or tool.display_name} {_facts(tool)}{_more(name)}"]
    row = ToolRow(id="page", name=name)
    try:
        actions = resolve_actions(row, tool, await actions_metadata(tool))
    except LoadFailure:
        actions = ()
    whose = "row" if tool.actions_in_config else "server"
    parts.append(_table(_ACTION, map(_action_cells, actions)) if actions else f"Its actions are those of its {whose}.")
    config = tool({}, Scope(user_id=None, owner=None, tool_id="page")).get_config_requirements()
    if config:
        parts.append(_table(_KEY, (_key_cells(key, entry) for key, entry in config.items())))
    parts += [
        f"{title}:\n\n" + "\n".join(f"- {mark}{text}{mark}" for text in texts)
        for title, mark, texts in (("Limits", "", tool.limits), ("Errors", "`", tool.errors))
        if texts
    ]
    return "\n\n".join(parts)


def _more(name: str) -> str:
    page = _PAGES.get(name, name)
    if not (PAGE.parent / f"{page}.md").exists():
        return ""
    return f" More on [{'its page' if page == name else 'the page of ' + page.replace('_', ' ')}]({page}.md)."


def _facts(tool: type[Tool]) -> str:
    said = [
        (tool.default_on, "On by default"),
        (tool.internal, "Not in the catalogue"),
        (tool.user_scoped, "Calls must have a user"),
        (tool.needs_row, "Needs a stored row"),
        (tool.serial, "Parallel calls of one turn run one after another"),
        (not tool.headless_allowed, "Not in headless runs"),
        (tool.untrusted, "A model is told its results between marks"),
        (callable(getattr(tool, "preview_decision", None)), "Asked at each call whether a person must be"),
    ]
    return "".join(f"{text}. " for holds, text in said if holds) + f"Timeout: {tool.timeout:g} s."


_ACTION: Final = ("action", "effect", "idempotent", "asks first", "parameters")
_KEY: Final = ("configuration", "type", "required", "what it is")


def _table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]] | map[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [
        f"| {' | '.join(cell.replace('|', chr(92) + '|').replace(chr(10), ' ') for cell in row)} |" for row in rows
    ]
    return "\n".join(lines)


def _action_cells(action: Action) -> tuple[str, ...]:
    required = action.parameters.get("required", ())
    parameters = [
        f"`{name}`{'' if name in required else ' (optional)'}: {_schema(schema)}"
        for name, schema in action.parameters.get("properties", {}).items()
    ]
    name = f"`{action.name}`"
    return (
        name,
        action.effect,
        _yes(action.idempotent),
        _yes(action.require_approval),
        "<br>".join(parameters) or "none",
    )


def _key_cells(key: str, entry: dict[str, Any]) -> tuple[str, ...]:
    gates = entry.get("depends_on")
    when = " and ".join(f"`{name}` is {_listed(value)}" for name, value in gates.items()) if gates else ""
    needed = bool(entry.get("required")) and entry.get("default") is None
    required = f"where {when}" if needed and when else _yes(needed)
    kind = f"{_schema(entry)}{', a secret' if entry.get('secret') else ''}"
    return f"`{key}`", kind, required, str(entry.get("description") or entry.get("label") or "")


def _schema(schema: dict[str, Any]) -> str:
    kind = schema.get("type", "any")
    words = [_WORDS.get(str(each), str(each)) for each in (kind if isinstance(kind, list) else [kind])]
    text = " or ".join(words)
    if kind == "array" and isinstance(schema.get("items"), dict):
        text += f" of {_schema(schema['items'])}"
    bounds = [
        f"one of {_listed(schema['enum'])}" if schema.get("enum") else "",
        _range(schema, "minimum", "maximum", ""),
        _range(schema, "minLength", "maxLength", " characters"),
        _range(schema, "minItems", "maxItems", " items"),
        f"like `{schema['pattern']}`" if schema.get("pattern") else "",
        f"`{_plain(schema['default'])}` if left out" if schema.get("default") not in (None, "") else "",
    ]
    return ", ".join([text, *filter(None, bounds)])


def _range(schema: dict[str, Any], least: str, most: str, what: str) -> str:
    low, high = schema.get(least), schema.get(most)
    if low is not None and low == high:
        return f"{low:,}{what}"
    if low is not None and high is not None:
        return f"{low:,} to {high:,}{what}"
    if high is not None:
        return f"at most {high:,}{what}"
    return f"at least {low:,}{what}" if low else ""


def _listed(values: Any) -> str:
    return ", ".join(f"`{_plain(value)}`" for value in (values if isinstance(values, list) else [values]))


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"


if __name__ == "__main__":
    PAGE.write_text(anyio.run(generated, PAGE.read_text()))
