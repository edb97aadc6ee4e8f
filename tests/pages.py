"""Reading our own Markdown pages: sections, tables, code blocks, links."""

from __future__ import annotations

import re
from pathlib import Path

from tests.shape import ROOT

__all__ = ("code_blocks", "links", "page", "pages", "table")


def pages() -> list[Path]:
    """Return every page of the repository."""
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]


def page(name: str) -> str:
    """Return a page's text by its path from the repository's root."""
    return (ROOT / name).read_text()


def table(text: str, heading: str) -> list[tuple[str, ...]]:
    """Return the rows of the first table below a second-level heading, without markup; empty if there is none."""
    section = re.split(r"^## ", text, flags=re.MULTILINE)
    body = next(part.partition("\n")[2] for part in section if part.partition("\n")[0].strip("` ") == heading)
    lines = [line for line in body.splitlines() if line.startswith("|")]
    return [_cells(line) for line in lines[2:]]


def _cells(line: str) -> tuple[str, ...]:
    cells = re.split(r"(?<!\\)\|", line.strip("|\n"))
    return tuple(cell.strip().strip("`").replace("\\|", "|") for cell in cells)


def code_blocks(text: str, language: str) -> list[str]:
    """Return the fenced blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def links(text: str) -> list[str]:
    """Return the targets of the links to files of ours."""
    return [target.partition("#")[0] for target in re.findall(r"\]\(([^)]+)\)", text) if "://" not in target]
