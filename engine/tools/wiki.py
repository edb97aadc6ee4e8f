"""``wiki``: pages that people and models write together; their owner says who may."""

from __future__ import annotations

from typing import Any, ClassVar

from engine.contract import Tool, ToolContext, ToolResult
from engine.keeping import Keeping
from engine.text_editing import EditError
from engine.wiki.actions import wiki_actions
from engine.wiki.limits import LARGEST, LINKS, LONGEST_PATH, LONGEST_TITLE, LONGEST_WIKI, MOVED

__all__ = ("Wiki",)


class Wiki(Tool):
    """Keeps pages for the owner of its row. Each change is atomic and a revision; none is lost, none overwritten."""

    name = "wiki"
    display_name = "Wiki"
    description = "Read and write the pages of a wiki: versions with authors, links between pages, search."
    needs_row = True
    idempotent = True
    serial = True
    timeout = 30.0
    limits: ClassVar[tuple[str, ...]] = (
        f"{LARGEST:,} bytes per page",
        f"{LONGEST_PATH} bytes per path",
        f"{LONGEST_TITLE} characters per title",
        f"{LINKS:,} linked pages per page",
        f"{MOVED:,} pages deleted, moved or relinked by one call",
    )
    errors: ClassVar[tuple[str, ...]] = (
        "Error: Invalid path: ...",
        "Error: Page not found: p",
        "Error: Directory not found: p",
        "Error: Page already exists at p ...",
        "Error: Page changed since it was read: ...",
        "Error: String 'x' not found in page.",
        "Error: String 'x' occurs N times in page (...).",
        "Error: Invalid line number. Page has N lines.",
        "Error: Line range out of bounds. Page has N lines.",
        "Error: Page too long: ...",
        "Error: Cannot delete the wiki root.",
        "Error: Cannot rename the wiki root, ...",
        "Error: You may read this wiki, not change it; ...",
    )

    async def execute_action(self, action_name: str, context: ToolContext, /, **kwargs: Any) -> Any:
        """Run an action; what cannot be done is an error result with the reason, and changes nothing."""
        # Imported here: the database library is a quarter of a second that the catalogue need not cost.
        from engine.wiki.access import Wiki as Pages
        from engine.wiki.changing import changed
        from engine.wiki.looking import seen

        action = action_name.removeprefix("wiki_")
        try:
            pages = Pages(self.config, self.scope, context)
            for answer in (seen, changed):
                if (said := await answer(pages, action, kwargs)) is not None:
                    return said
        except EditError as error:
            return _failure(str(error))
        return _failure(f"Unknown action: {action_name}")

    @classmethod
    def keeping(cls) -> Keeping:
        """Return where pages are kept: their wiki's owner's, whoever wrote them."""
        from engine.tool_schema import wiki_links, wiki_pages, wiki_revisions
        from engine.wiki.access import hold

        said = ("title", "content")
        return Keeping(
            items=wiki_pages,
            past=wiki_revisions,
            item="path",
            texts=said,
            past_texts=said,
            whose="wiki",
            derived=(wiki_links,),
            hold=hold,
        )

    def get_actions_metadata(self) -> list[dict[str, Any]]:
        """Return the actions."""
        return wiki_actions()

    def get_config_requirements(self) -> dict[str, Any]:
        """Return what may be configured: which of the owner's wikis it is, and whether only editors write."""
        return {
            "wiki": {
                "type": "string",
                "required": False,
                "description": "The wiki's name among its owner's; rows with the same name have the same pages. "
                "If left out, the row has a wiki of its own.",
            },
            "everyone_writes": {
                "type": "boolean",
                "required": False,
                "default": False,
                "description": "Whether everyone who may use the row may change pages; else its owner and editors.",
            },
        }

    def config_problems(self) -> list[str]:
        """Return what is wrong with the configuration: a name that no wiki can have."""
        name = self.config.get("wiki")
        if not isinstance(name, str) or len(name.encode(errors="replace")) <= LONGEST_WIKI:
            return []
        return [f"'wiki' is longer than {LONGEST_WIKI} bytes"]


def _failure(text: str) -> ToolResult:
    return ToolResult(f"Error: {text}", status="error")
