"""What a tool stands on is loaded when it is used: not to find it, not to make it, not to say what it does."""

from __future__ import annotations

from tests.test_imports import HEAVY, loaded_by

__all__ = ()

SCRIPT = """
import sys
import anyio
from engine.cli.catalogue import read_catalogue
from engine.defaults import default_rows
from engine.discovery import ToolManager

manager = ToolManager()
tools = manager.load_tools()
default_rows(manager)
catalogue = anyio.run(read_catalogue, ())
assert not catalogue.problems and not manager.problems, (catalogue.problems, manager.problems)
assert len(catalogue.entries) >= len(tools) > 3
print(*sorted(sys.modules))
"""


def test_the_catalogue_loads_nothing_heavy() -> None:
    """Every built-in tool found, made, and asked what it does and what it must be configured with."""
    loaded = loaded_by(SCRIPT)
    assert "engine.tools.mcp_tool" in loaded
    # The command line's own: what people are shown is made with these.
    assert sorted(name for name in HEAVY if name in loaded and name not in ("click", "rich")) == []
