"""``notes``: notes that a user and the model keep between conversations, per user and tool row."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from engine.contract import Tool, ToolContext, ToolResult
from engine.keeping import Keeping
from engine.note_actions import note_actions
from engine.note_limits import FOUND, LARGEST, LISTED, LONGEST_TITLE, NOTES, VERSIONS
from engine.text_arguments import flag_in, line_in, number_in, query_in, range_in, text_in
from engine.text_editing import EditError, TextKind
from engine.tool_space import kept_apart, scope_requirements

__all__ = ("Notes",)

_NOTE: Final = TextKind("note", LARGEST)
_TITLE: Final = "note"


class Notes(Tool):
    """Keeps notes in the journal's database. Two calls that change one at once both take effect, one after another."""

    name = "notes"
    display_name = "Notes"
    description = "Keep notes between conversations: read, rewrite, change parts, search, undo, delete."
    user_scoped = True
    needs_row = True
    serial = True
    timeout = 30.0
    limits: ClassVar[tuple[str, ...]] = (
        f"{NOTES:,} notes per row and user",
        f"{LARGEST:,} bytes per note",
        f"{LONGEST_TITLE} characters per title",
        f"{VERSIONS} versions of each note in its history",
    )
    errors: ClassVar[tuple[str, ...]] = (
        "No note found.",
        "Note content required.",
        "String 'x' not found in note.",
        "String 'x' occurs N times in note (...).",
        "Invalid line number. Note has N lines.",
        "Note changed since it was read: ...",
        "Note too long: ...",
        "Too many notes: ...",
    )

    async def execute_action(self, action_name: str, context: ToolContext, /, **kwargs: Any) -> Any:
        """Run an action; an edit that cannot be made is an error result with the reason."""
        # Imported here: the database library is a quarter of a second that the catalogue need not cost.
        from engine.note_store import NoteStore

        kept, action = kept_apart(context, self.config).store, action_name.removeprefix("note_")
        store = NoteStore(kept, context.idempotency_key)
        try:
            title = _title(kwargs)
            if (seen := await _seen(store, action, title, kwargs)) is not None:
                return seen
            if (said := await _changed(store, action, title, kwargs)) is not None:
                return said
        except EditError as error:
            return _failure(str(error))
        return _failure(f"Unknown action: {action_name}")

    @classmethod
    def keeping(cls) -> Keeping:
        """Return where notes are kept."""
        from engine.schema import note_history, notes

        said = ("content",)
        return Keeping(items=notes, past=note_history, item="title", texts=said, past_texts=said, index="notes")

    def get_actions_metadata(self) -> list[dict[str, Any]]:
        """Return the actions."""
        return note_actions()

    def get_config_requirements(self) -> dict[str, Any]:
        """Return whose notes they are."""
        return scope_requirements()


async def _seen(store: Any, action: str, title: str, kwargs: dict[str, Any]) -> str | None:
    """Return what a reading action says; None: it is not one."""
    match action:
        case "view":
            content, lines = _present(await store.read(title)), range_in(kwargs, "view_range")
            return content if lines is None else _NOTE.numbered(content, *lines)
        case "list":
            return _listing(await store.page(text_in(kwargs, "after")))
        case "search":
            limit = min(number_in(kwargs, "limit") or FOUND, FOUND)
            return await _search(store, query_in(kwargs), limit)
        case "history":
            return _history(title, await store.versions(title))
    return None


async def _changed(store: Any, action: str, title: str, kwargs: dict[str, Any]) -> str | None:
    """Make a change and say so; None: it is none."""
    expected = number_in(kwargs, "expected_version", 0)
    if action == "delete":
        if not await store.delete(title, expected):
            raise EditError("No note found to delete.")
        return "Note deleted."
    if action == "undo":
        version = await store.restore(title, number_in(kwargs, "version"), expected)
        return f"Note restored: it says what it said at version {version}."
    edits = {
        "overwrite": (_overwritten, "Note saved."),
        "append": (_appended, "Text appended."),
        "str_replace": (_replaced, "Note updated."),
        "insert": (_inserted, "Text inserted."),
    }
    if action not in edits:
        return None
    edit, said = edits[action]
    await store.change(title, lambda note: edit(note, kwargs), expected)
    return said


def _overwritten(note: Any, kwargs: dict[str, Any]) -> str:  # noqa: ARG001
    text = text_in(kwargs, "text")
    if not text.strip():
        raise EditError("Note content required.")
    return _NOTE.fitting(text)


def _appended(note: Any, kwargs: dict[str, Any]) -> str:
    text = text_in(kwargs, "text")
    return _overwritten(note, kwargs) if note is None else _NOTE.appended(note.content, text)


def _replaced(note: Any, kwargs: dict[str, Any]) -> str:
    old, new = text_in(kwargs, "old_str"), text_in(kwargs, "new_str")
    return _NOTE.replaced(_present(note), old, new, flag_in(kwargs, "replace_all"))


def _inserted(note: Any, kwargs: dict[str, Any]) -> str:
    return _NOTE.inserted(_present(note), line_in(kwargs, "line_number"), text_in(kwargs, "text"))


def _title(kwargs: dict[str, Any]) -> str:
    title = text_in(kwargs, "title", _TITLE).strip()
    if not title or len(title) > LONGEST_TITLE or not title.isprintable():
        raise EditError(f"A title is one line of at most {LONGEST_TITLE} characters.")
    return title


def _present(note: Any) -> str:
    if note is None:
        raise EditError("No note found.")
    return str(note.content)


async def _search(store: Any, query: str, limit: int) -> str:
    hits = await store.find(query, limit + 1)
    if not hits:
        return "No note has it."
    lines = [f"- {hit.key}" + (f" (line {hit.line}): {hit.excerpt}" if hit.line else "") for hit in hits[:limit]]
    return "\n".join([*lines, *(["(there are more)"] if len(hits) > limit else [])])


def _listing(notes: list[Any]) -> str:
    if not notes:
        return "No notes found."
    shown = notes[:LISTED]
    lines = [
        f"- {n.title} (version {n.version}, {n.length} characters, {n.updated_at:%Y-%m-%d %H:%M} UTC)" for n in shown
    ]
    more = [f"(there are more; list them with after: {shown[-1].title!r})"] if len(notes) > LISTED else []
    return "\n".join(["Notes:", *lines, *more])


def _history(title: str, versions: list[Any]) -> str:
    if not versions:
        raise EditError("No note found.")
    lines = [
        f"- version {v.version}: {v.length} characters, {v.changed_at:%Y-%m-%d %H:%M} UTC, by call {v.by_call}"
        for v in versions
    ]
    return "\n".join([f"Versions of {title}:", *lines])


def _failure(text: str) -> ToolResult:
    return ToolResult(text, status="error")
