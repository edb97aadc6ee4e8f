"""``notes``: a note that a user and the model keep between conversations, one per user and tool row."""

from __future__ import annotations

from typing import Any

from engine.contract import Tool, ToolContext, ToolResult
from engine.note_text import NoteError, inserted, overwritten, replaced

__all__ = ("Notes",)

_TITLE = "note"


class Notes(Tool):
    """Keeps a note in the journal's database. Two calls that change it at once both take effect, one after another."""

    name = "notes"
    display_name = "Notes"
    description = "Keep a note between conversations: read it, rewrite it, change parts of it, delete it."
    user_scoped = True
    needs_row = True
    timeout = 30.0

    async def execute_action(self, action_name: str, context: ToolContext, /, **kwargs: Any) -> Any:
        """Run an action; an edit that cannot be made is an error result with the reason."""
        # Imported here: the database library is a quarter of a second that the catalogue need not cost.
        from engine.note_store import Note, NoteStore

        note = NoteStore(context.store, _TITLE, context.idempotency_key)

        def present(found: Note | None) -> str:
            if found is None:
                raise NoteError("No note found.")
            return found.content

        try:
            match action_name.removeprefix("note_"):
                case "view":
                    return present(await note.read())
                case "overwrite":
                    content = overwritten(_text(kwargs, "text"))
                    await note.change(lambda _: content)
                    return "Note saved."
                case "str_replace":
                    old, new = _text(kwargs, "old_str"), _text(kwargs, "new_str")
                    everywhere = kwargs.get("replace_all") is True
                    await note.change(lambda found: replaced(present(found), old, new, everywhere))
                    return "Note updated."
                case "insert":
                    line, text = _line(kwargs), _text(kwargs, "text")
                    await note.change(lambda found: inserted(present(found), line, text))
                    return "Text inserted."
                case "delete":
                    return "Note deleted." if await note.delete() else _failure("No note found to delete.")
                case _:
                    return _failure(f"Unknown action: {action_name}")
        except NoteError as error:
            return _failure(str(error))

    def get_actions_metadata(self) -> list[dict[str, Any]]:
        """Return the five actions."""
        text = {"type": "string"}
        return [
            _action("note_view", "Read the note.", effect="read", idempotent=True),
            _action("note_overwrite", "Replace the whole note, or begin one.", ["text"], text=text),
            _action(
                "note_str_replace",
                "Replace a piece of the note's text. The piece is taken literally and must occur exactly once, unless "
                "replace_all is set.",
                ["old_str", "new_str"],
                old_str={**text, "description": "The piece as it stands in the note."},
                new_str={**text, "description": "What takes its place; empty deletes the piece."},
                replace_all={"type": "boolean", "description": "Replace every occurrence.", "default": False},
            ),
            _action(
                "note_insert",
                "Insert lines into the note.",
                ["line_number", "text"],
                line_number={
                    "type": "integer",
                    "minimum": 1,
                    "description": "The line before which the text is put, counted from 1; one past the last appends.",
                },
                text=text,
            ),
            _action("note_delete", "Delete the note.", effect="destroy"),
        ]

    def get_config_requirements(self) -> dict[str, Any]:
        """Return nothing: there is nothing to configure."""
        return {}


def _action(
    name: str,
    description: str,
    required: list[str] | None = None,
    effect: str = "write",
    idempotent: bool = False,
    **properties: Any,
) -> dict[str, Any]:
    return {
        "name": name,
        "description": description,
        "effect": effect,
        "idempotent": idempotent,
        "parameters": {
            "type": "object",
            "properties": properties,
            "required": required or [],
            "additionalProperties": False,
        },
    }


def _text(kwargs: dict[str, Any], name: str) -> str:
    value = kwargs.get(name, "")
    if not isinstance(value, str):
        raise NoteError(f"{name} must be text.")
    return value


def _line(kwargs: dict[str, Any]) -> int:
    value = kwargs.get("line_number")
    if not isinstance(value, int) or isinstance(value, bool):
        raise NoteError("line_number must be a whole number, counted from 1.")
    return value


def _failure(text: str) -> ToolResult:
    return ToolResult(text, status="error")
