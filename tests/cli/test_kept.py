"""``calljournal kept``: what tools keep of a user is shown, taken along and erased from a shell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import Called, check_refused
from tests.cli.configured import Commands, prepared
from tests.cli.test_tools_in_turns import turn

__all__ = ()


@pytest.fixture
def ada(called: Called, database_url: str, tmp_path: Path) -> Commands:
    commands = prepared(called, database_url, tmp_path)
    for path, text in (("/a", "first"), ("/b", "second")):
        commands.done("run", str(turn(tmp_path, "memory_create", {"path": path, "file_text": text})), "--message", path)
    return commands


def test_shown_taken_along_and_erased(ada: Commands) -> None:
    (place,) = ada.done("kept").lines
    assert (place["tool"], place["items"], place["size"], place["versions"]) == ("memory", 2, 11, 2)
    records = ada.done("kept", "export", "--history").lines
    assert [(each["kind"], each["content"]["path"]) for each in records] == [
        ("item", "/a"),
        ("item", "/b"),
        ("version", "/a"),
        ("version", "/b"),
    ]
    assert [each["content"]["content"] for each in records[:2]] == ["first", "second"]
    check_refused(ada("kept", "erase"), 2, "--yes")
    check_refused(ada("kept", "erase", "think", "--yes"), 2, "no tool 'think' that keeps anything")
    assert ada.done("kept", "erase", "notes", "--yes").lines == []
    (erased,) = ada.done("kept", "erase", "memory", "--yes").lines
    assert (erased["items"], erased["versions"]) == (2, 2)
    assert ada.done("kept").lines == []
    assert "first" in json.dumps(ada.done("events").lines)
