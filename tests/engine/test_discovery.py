"""Finding tools: what is taken, what is passed over, and that one bad module costs nothing else."""

from __future__ import annotations

import subprocess
import sys
from abc import abstractmethod
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from engine.contract import Tool
from engine.discovery import Problem, ToolManager
from events.errors import NotFound


class Plain(Tool):
    def execute_action(self, action_name: str, /, **kwargs: Any) -> Any:
        return action_name

    def get_actions_metadata(self) -> Any:
        return [{"name": "act"}]

    def get_config_requirements(self) -> dict[str, Any]:
        return {}


class Named(Plain):
    name = "counter"


class Derived(Named):
    """Extends a concrete tool without giving itself a name."""


class Half(Plain):
    name = "half"

    @abstractmethod
    def finish(self) -> None: ...


class Whole(Half):
    """Completes an abstract tool that has a name."""

    def finish(self) -> None:
        """Nothing to finish."""


class Impostor(Plain):
    name = "notes"


HEAD = """
    from engine.contract import Tool

    class Dropped(Tool):
        {body}
        def execute_action(self, action_name, /, **kwargs): return 1
        def get_actions_metadata(self): return []
        def get_config_requirements(self): return {{}}
"""


def drop(folder: Path, file: str, body: str = "", more: str = "") -> None:
    text = dedent(HEAD.format(body=body)) + dedent(more)
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_the_built_in_tools_are_in_the_catalogue_and_internal_ones_are_not() -> None:
    manager = ToolManager()
    tools = manager.load_tools()
    assert {"notes", "read_webpage"} <= set(tools)
    assert "think" not in tools
    assert manager.load_tool("think").internal
    assert manager.problems == ()
    assert all(issubclass(tool, Tool) for tool in tools.values())


def test_a_dropped_in_file_is_a_tool_named_for_its_file_or_as_it_says(tmp_path: Path) -> None:
    drop(tmp_path, "weigh.py")
    drop(tmp_path, "other.py", 'name = "crane"')
    drop(tmp_path, "pack/__init__.py")
    manager = ToolManager(paths=(tmp_path,))
    assert {"weigh", "crane", "pack"} <= set(manager.load_tools())
    assert "other" not in manager.load_tools()
    assert manager.load_tool("crane").__name__ == "Dropped"


def test_what_is_no_tool_of_its_module_is_passed_over(tmp_path: Path) -> None:
    drop(tmp_path, "base.py")
    drop(tmp_path, "_private.py")
    drop(tmp_path, "__main__.py")
    drop(tmp_path, "not-a-module.py")
    (tmp_path / "readme.txt").write_text("class X(Tool): pass")
    (tmp_path / "importer.py").write_text("from engine.contract import Tool\nfrom engine.tools.notes import Notes\n")
    drop(tmp_path, "quiet.py", "internal = True")
    known = set(ToolManager().load_tools())
    manager = ToolManager(paths=(tmp_path,))
    assert set(manager.load_tools()) == known
    assert manager.problems == ()
    assert manager.load_tool("quiet").internal


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import no_such_library", "ModuleNotFoundError"),
        ("def broken(:", "SyntaxError"),
        ("raise SystemExit(3)", "SystemExit"),
        ("1 / 0", "ZeroDivisionError"),
    ],
)
def test_a_module_that_cannot_be_imported_is_reported_and_costs_nothing_else(
    tmp_path: Path, text: str, reason: str
) -> None:
    (tmp_path / "bad.py").write_text(text)
    drop(tmp_path, "good.py")
    manager = ToolManager(paths=(tmp_path,))
    assert "good" in manager.load_tools()
    [problem] = manager.problems
    assert problem.source == str(tmp_path / "bad.py")
    assert reason in problem.reason
    assert not [name for name in sys.modules if name.startswith("calljournal_tools") and name.endswith("_bad")]


def test_of_two_tools_with_one_name_the_first_wins_and_built_in_ones_come_first(tmp_path: Path) -> None:
    drop(tmp_path, "a.py", 'name = "twin"')
    drop(tmp_path, "b.py", 'name = "twin"')
    manager = ToolManager(paths=(tmp_path,), extra=(Impostor,))
    tools = manager.load_tools()
    assert tools["notes"] is not Impostor
    assert manager.load_tool("notes") is tools["notes"]
    assert [problem.source for problem in manager.problems] == [f"{__name__}.Impostor", str(tmp_path / "b.py")]
    assert all("already" in problem.reason for problem in manager.problems)


def test_classes_given_outright_have_their_own_name_or_their_modules() -> None:
    tools = ToolManager(extra=(Plain, Named, Whole)).load_tools()
    assert tools[__name__.rpartition(".")[2]] is Plain
    assert tools["counter"] is Named
    assert tools["half"] is Whole


def test_a_tool_does_not_take_the_name_of_the_one_it_extends() -> None:
    tools = ToolManager(extra=(Named, Derived)).load_tools()
    assert tools["counter"] is Named
    assert tools[__name__.rpartition(".")[2]] is Derived


def test_a_class_that_is_not_complete_is_reported() -> None:
    manager = ToolManager(extra=(Half,))
    assert "half" not in manager.load_tools()
    assert manager.problems == (Problem(f"{__name__}.Half", "lacks finish"),)


def test_a_folder_that_is_not_there_is_reported(tmp_path: Path) -> None:
    manager = ToolManager(paths=(tmp_path / "gone",))
    assert manager.load_tools()
    assert manager.problems[0].source == str(tmp_path / "gone")


def test_a_tool_that_is_not_there_is_not_found_and_what_is_there_is_said(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("1 / 0")
    manager = ToolManager(paths=(tmp_path,))
    with pytest.raises(NotFound, match=r"'bad'.*notes.*ZeroDivisionError"):
        manager.load_tool("bad")
    for name in ("", "../rows", "__init__", "base"):
        with pytest.raises(NotFound):
            manager.load_tool(name)


def test_a_dropped_in_file_can_neither_shadow_a_library_nor_be_shadowed(tmp_path: Path) -> None:
    drop(tmp_path, "json.py")
    assert ToolManager(paths=(tmp_path,)).load_tools()["json"].__name__ == "Dropped"
    import json

    assert hasattr(json, "loads")


def test_what_is_dropped_in_is_live_at_the_next_start(tmp_path: Path) -> None:
    first = ToolManager(paths=(tmp_path,))
    assert "late" not in first.load_tools()
    drop(tmp_path, "late.py")
    assert "late" not in first.load_tools()
    assert "late" in ToolManager(paths=(tmp_path,)).load_tools()


@pytest.mark.parametrize("entry", ["whole = pier:Crane", "module = pier"])
def test_installed_packages_bring_tools_by_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str
) -> None:
    _install(tmp_path, entry, monkeypatch)
    manager = ToolManager()
    assert manager.load_tools()["crane"].__module__ == "pier"
    assert manager.problems == ()


@pytest.mark.parametrize("entry", ["gone = pier:Nothing", "wrong = pier:NUMBER", "absent = no_such_pier"])
def test_a_broken_entry_point_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str) -> None:
    _install(tmp_path, entry, monkeypatch)
    manager = ToolManager()
    assert "notes" in manager.load_tools()
    [problem] = manager.problems
    assert problem.source.startswith(f"entry point {entry.partition(' ')[0]} ")


def _install(folder: Path, entry: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "pier", raising=False)
    drop(folder, "pier.py", 'name = "crane"', "\nCrane = Dropped\nNUMBER = 4\n")
    info = folder / "pier-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pier\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[calljournal.tools]\n{entry}\n")


def test_a_built_in_tool_costs_the_import_of_its_own_module_only() -> None:
    program = """
    import sys
    from engine.discovery import ToolManager
    assert not any(name.startswith("engine.tools.") for name in sys.modules)
    ToolManager().load_tool("think")
    loaded = sorted(name for name in sys.modules if name.startswith("engine.tools."))
    assert loaded == ["engine.tools.think"], loaded
    ToolManager().load_tools()
    heavy = {"httpx", "sqlalchemy", "trio", "fastmcp", "asyncpg"} & set(sys.modules)
    assert not heavy, heavy
    """
    done = subprocess.run([sys.executable, "-c", dedent(program)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
