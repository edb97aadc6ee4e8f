"""The pages say what the code says."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
from sqlalchemy import Column

import events.errors
import events.types
from engine.schema import metadata as engine_tables
from events.schema import metadata as log_tables
from events.transitions import STATUSES
from projections.schema import metadata as projection_tables
from tests.pages import links, page, pages, table
from tests.shape import ROOT

TYPES = ast.parse((ROOT / "events/types.py").read_text())
STRUCTS = {node.name: node for node in TYPES.body if isinstance(node, ast.ClassDef)}
TABLES = {
    name: found for tables in (log_tables, projection_tables, engine_tables) for name, found in tables.tables.items()
}


def fields(struct: str) -> list[tuple[str, str]]:
    """Return (name, type) of a struct's own fields, as its source has them."""
    body = STRUCTS[struct].body
    return [(ast.unparse(n.target), ast.unparse(n.annotation)) for n in body if isinstance(n, ast.AnnAssign)]


@pytest.mark.parametrize("struct", STRUCTS)
def test_events_page_has_every_field(struct: str) -> None:
    rows = table(page("docs/events.md"), "Every event" if struct == "_Fact" else struct)
    assert [(name, kind) for name, kind, _ in rows] == fields(struct)
    assert all(meaning for _, _, meaning in rows)


@pytest.mark.parametrize("name", TABLES)
def test_database_page_has_every_column(name: str) -> None:
    rows = table(page("docs/database.md"), name)
    assert [(column, kind) for column, kind, _ in rows] == [(c.name, _kind(c)) for c in TABLES[name].columns]
    assert all(meaning for _, _, meaning in rows)


def _kind(column: Column[object]) -> str:
    kind = {"Utc": "time", "Text": "text", "BigInteger": "integer", "Integer": "integer", "Boolean": "boolean"}
    return kind[type(column.type).__name__] + ("?" if column.nullable else "")


def test_errors_page_has_every_error() -> None:
    families = {row[0]: row[1] for row in table(page("docs/errors.md"), "Families")}
    bases = {name: getattr(events.errors, name).__bases__[0].__name__ for name in events.errors.__all__}
    roots = ("Exception", "JournalError")
    assert families == {name: "" if base in roots else base for name, base in bases.items()}


@pytest.mark.parametrize(
    ("heading", "words"),
    [
        ("Failed", get_args(events.types.FailureKind)),
        ("Denied", get_args(events.types.DenialReason)),
    ],
)
def test_errors_page_has_every_reason(heading: str, words: tuple[str, ...]) -> None:
    assert [row[0] for row in table(page("docs/errors.md"), heading)] == list(words)


def test_every_status_is_explained() -> None:
    text = page("docs/concepts.md")
    assert [status for status in STATUSES if status not in text] == []


@pytest.mark.parametrize("path", pages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    assert [target for target in links(path.read_text()) if target and not (path.parent / target).exists()] == []


@pytest.mark.parametrize("path", pages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_make_targets_exist(path: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", page("Makefile"), flags=re.MULTILINE))
    named = re.findall(r"(?:`|^    )make ([a-z][a-z-]*)", path.read_text(), flags=re.MULTILINE)
    assert set(named) - targets == set()


@pytest.mark.parametrize("path", pages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_files_that_are_named_exist(path: Path) -> None:
    named = re.findall(r"`((?:events|projections|engine|tests|docs|examples|benchmarks)/[\w/.]*)`", path.read_text())
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_readme_names_every_command() -> None:
    listing = subprocess.run(
        [sys.executable, "-c", "from engine.cli.main import main; main()", "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    commands = re.findall(r"^  ([a-z]+)  ", listing.partition("Commands:")[2], flags=re.MULTILINE)
    named = [row[0].split()[1] for row in table(page("README.md"), "On the command line")]
    assert sorted(named) == sorted(commands)
