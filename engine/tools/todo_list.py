"""``todo_list``: numbered to-do items, per user and tool row."""

from __future__ import annotations

from typing import Any, ClassVar

from engine.contract import Tool, ToolContext, ToolResult
from engine.keeping import Keeping
from engine.text_arguments import flag_in, number_in
from engine.text_editing import EditError
from engine.todo_actions import todo_actions
from engine.todo_item import TodoItem, due_in, parent_in, priority_in, title_in, titles_in, todo_number
from engine.todo_limits import AT_ONCE, LISTED, LONGEST_TITLE, PRIORITIES, REMEMBERED, TODOS, VERSIONS
from engine.tool_space import kept_apart, scope_requirements

__all__ = ("TodoList",)


class TodoList(Tool):
    """Keeps to-do items in the journal's database; a number is never given twice."""

    name = "todo_list"
    display_name = "To-do list"
    description = "Keep a to-do list between conversations: create, list, change, complete, reopen, delete items."
    user_scoped = True
    needs_row = True
    serial = True
    timeout = 30.0
    limits: ClassVar[tuple[str, ...]] = (
        f"{TODOS:,} items per row and user",
        f"{AT_ONCE} items created at once",
        f"{LONGEST_TITLE} characters per title",
        f"{VERSIONS} versions of each item; those of deleted items for {REMEMBERED.days} days",
    )
    errors: ClassVar[tuple[str, ...]] = (
        "Error: Title is required.",
        "Error: todo_id must be a positive integer.",
        "Error: Todo with ID n not found.",
        "Error: due_at must be an ISO 8601 date or time, ...",
        "Error: Todo n has N part(s); ...",
        "Error: Too many todos: ...",
    )

    async def execute_action(self, action_name: str, context: ToolContext, /, **kwargs: Any) -> Any:
        """Run an action; one that cannot be done is an error result with the reason."""
        # Imported here: the database library is a quarter of a second that the catalogue need not cost.
        from engine.todo_changes import TodoChanges

        changes = TodoChanges(kept_apart(context, self.config))
        try:
            if (seen := await _seen(changes, action_name, kwargs)) is not None:
                return seen
            if (said := await _changed(changes, action_name, kwargs)) is not None:
                return said
        except EditError as error:
            return ToolResult(f"Error: {error}", status="error")
        return ToolResult(f"Error: Unknown action: {action_name}", status="error")

    @classmethod
    def keeping(cls) -> Keeping:
        """Return where items are kept."""
        from engine.tool_schema import todo_history, todos

        return Keeping(items=todos, past=todo_history, item="number", texts=("title",), past_texts=("definition",))

    def get_actions_metadata(self) -> list[dict[str, Any]]:
        """Return the actions."""
        return todo_actions()

    def get_config_requirements(self) -> dict[str, Any]:
        """Return whose items they are."""
        return scope_requirements()


async def _seen(changes: Any, action: str, kwargs: dict[str, Any]) -> str | None:
    """Return what a reading action says; None: it is not one."""
    match action:
        case "todo_list":
            return await _listing(changes, kwargs)
        case "todo_get":
            item = await changes.found(todo_number(kwargs.get("todo_id")))
            return _details(item, await changes.items.parts(item.number, LISTED))
        case "todo_history":
            number = todo_number(kwargs.get("todo_id"))
            versions = await changes.items.versions(number)
            if not versions:
                raise EditError(f"Todo with ID {number} not found.")
            return "\n".join([f"Versions of todo [{number}]:", *map(_version_line, versions)])
    return None


async def _changed(changes: Any, action: str, kwargs: dict[str, Any]) -> str | None:
    """Make a change and say so; None: it is none."""
    match action:
        case "todo_create":
            fields = _fields(kwargs)
            items = await changes.create([TodoItem(0, title, **fields) for title in titles_in(kwargs)])
            return "\n".join(f"Todo created with ID {item.number}: {item.title}" for item in items)
        case "todo_update":
            number, fields = todo_number(kwargs.get("todo_id")), _fields(kwargs)
            if "title" in kwargs:
                fields["title"] = title_in(kwargs["title"])
            if not fields:
                raise EditError("Nothing to change: give title, priority, due_at or parent.")
            return f"Todo {number} updated to: {(await changes.update(number, **fields)).title}"
        case "todo_complete" | "todo_reopen":
            number, done = todo_number(kwargs.get("todo_id")), action == "todo_complete"
            await changes.update(number, done=done)
            return f"Todo {number} marked as {'completed' if done else 'open'}."
        case "todo_delete":
            number = todo_number(kwargs.get("todo_id"))
            await changes.delete(number, flag_in(kwargs, "recursive"))
            return f"Todo {number} deleted."
    return None


def _fields(kwargs: dict[str, Any]) -> dict[str, Any]:
    readers = {"priority": priority_in, "due_at": due_in, "parent": parent_in}
    return {name: reader(kwargs[name]) for name, reader in readers.items() if name in kwargs}


async def _listing(changes: Any, kwargs: dict[str, Any]) -> str:
    status, after = kwargs.get("status", "all"), number_in(kwargs, "after", 0) or 0
    limit = min(number_in(kwargs, "limit") or LISTED, LISTED)
    if status not in ("open", "completed", "all"):
        raise EditError("status must be open, completed or all.")
    items = await changes.items.page(after, None if status == "all" else status == "completed", limit + 1)
    if not items:
        return "No todos found."
    more = [f"(there are more; list them with after: {items[limit - 1].number})"] if len(items) > limit else []
    return "\n".join(["Todos:", *(item.line for item in items[:limit]), *more])


def _details(item: TodoItem, parts: list[TodoItem]) -> str:
    lines = [
        f"Todo [{item.number}]:",
        f"Title: {item.title}",
        f"Status: {item.status}",
        f"Priority: {PRIORITIES[item.priority]}",
        *([f"Due: {item.due}"] if item.due else []),
        *([f"Part of: [{item.parent}]"] if item.parent else []),
        *(["Parts:", *(part.line for part in parts)] if parts else []),
    ]
    return "\n".join(lines)


def _version_line(version: Any) -> str:
    said = "deleted" if version.item is None else version.item.line
    return f"- version {version.version}: {said}; {version.changed_at:%Y-%m-%d %H:%M} UTC, by call {version.by_call}"
