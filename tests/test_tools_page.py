"""The page of the tools says what their code says."""

from __future__ import annotations

import anyio
import pytest

from engine.discovery import ToolManager
from tests.tools_page import PAGE, generated, tool_names

__all__ = ()


def test_the_tables_are_those_of_the_code() -> None:
    page = PAGE.read_text()
    assert anyio.run(generated, page) == page, "run `make tools-page`"


@pytest.mark.parametrize("name", tool_names())
def test_every_tool_states_its_limits_and_errors(name: str) -> None:
    tool = ToolManager().load_tool(name)
    assert tool.limits
    assert tool.errors
    assert len(set(tool.errors)) == len(tool.errors)
    assert tool.description.endswith(".")
