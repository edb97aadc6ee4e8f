"""``memory``: files that a model keeps for a user between conversations."""

from __future__ import annotations

from typing import Any, ClassVar

from engine.contract import Tool, ToolContext, ToolResult
from engine.keeping import Keeping
from engine.memory_actions import memory_actions
from engine.memory_limits import FILES, LARGEST, LONGEST_PATH, RESTORABLE, SPACE, VERSIONS, MemoryLimits
from engine.text_editing import EditError
from engine.tool_space import kept_apart, scope_requirements

__all__ = ("Memory",)


class Memory(Tool):
    """Keeps files in the journal's database, per user and tool row; what changes or goes is kept for a while."""

    name = "memory"
    display_name = "Memory"
    description = "Remember things between conversations, in files: read, write, search, rename, delete, restore."
    user_scoped = True
    default_on = True
    serial = True
    timeout = 30.0
    limits: ClassVar[tuple[str, ...]] = (
        f"{FILES:,} files per row and user (max_files lowers it)",
        f"{LARGEST:,} bytes per file (max_file_bytes lowers it)",
        f"{SPACE:,} bytes of all files (max_bytes lowers it)",
        f"{LONGEST_PATH} characters per path",
        f"{VERSIONS} versions of each file; deleted files for {RESTORABLE.days} days",
    )
    errors: ClassVar[tuple[str, ...]] = (
        "Error: Invalid path: ...",
        "Error: File not found: p",
        "Error: Directory not found: p",
        "Error: String 'x' not found in file.",
        "Error: String 'x' occurs N times in file (...).",
        "Error: Invalid line number. File has N lines.",
        "Error: Line range out of bounds. File has N lines.",
        "Error: File already exists at p",
        "Error: Cannot create a file at directory path",
        "Error: Cannot rename root directory",
        "Error: File changed since it was read: ...",
        "Error: File too long: ...",
        "Error: Too many files: ...",
        "Error: Memory full: ...",
    )

    async def execute_action(self, action_name: str, context: ToolContext, /, **kwargs: Any) -> Any:
        """Run an action; a change that cannot be made is an error result with the reason."""
        # Imported here: the database library is a quarter of a second that the catalogue need not cost.
        from engine.memory_calls import MemoryCalls

        action = action_name.removeprefix("memory_")
        try:
            calls = MemoryCalls(kept_apart(context, self.config), MemoryLimits.of(self.config))
            said = await calls.run(action, kwargs)
        except EditError as error:
            return ToolResult(f"Error: {error}", status="error")
        return ToolResult(f"Error: Unknown action: {action_name}", status="error") if said is None else said

    async def opening(self, context: ToolContext) -> str | None:
        """Return an index of the files that changed last; None: there are none."""
        from engine.memory_index import memory_index

        return await memory_index(kept_apart(context, self.config).store)

    @classmethod
    def keeping(cls) -> Keeping:
        """Return where files are kept."""
        from engine.tool_schema import memory_files, memory_history

        said = ("content",)
        return Keeping(
            items=memory_files, past=memory_history, item="path", texts=said, past_texts=said, index="memory"
        )

    def get_actions_metadata(self) -> list[dict[str, Any]]:
        """Return the actions."""
        return memory_actions()

    def get_config_requirements(self) -> dict[str, Any]:
        """Return the limits that a row may lower, and whose files they are."""
        return {**MemoryLimits.requirements(), **scope_requirements()}
