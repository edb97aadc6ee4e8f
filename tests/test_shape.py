"""The house rules hold in every file, and each check can fail."""

from __future__ import annotations

import tomllib
from collections import defaultdict

import pytest

from tests.shape import LAYERS, ROOT, Source, modules, violations
from tests.shape_names import cycles, imported_modules, imported_names, module_name, string_tuple

SOURCES = modules()


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: str(source.path))
def test_every_file_keeps_the_house_rules(source: Source) -> None:
    assert violations(source) == []


def test_no_two_modules_import_each_other() -> None:
    assert cycles(_import_graph()) == []


def test_what_is_not_listed_is_private() -> None:
    listed = {module_name(s.path): string_tuple(s.tree, "__all__") for s in SOURCES if s.ours}
    foreign = [
        f"{source.path}:{line}: {name} is not in {module}.__all__"
        for source in SOURCES
        for line, module, name in imported_names(source.tree)
        if module in listed and f"{module}.{name}" not in listed and name not in (listed[module] or ())
    ]
    assert foreign == []


def test_cycles_are_found() -> None:
    graph = {"a": ["b"], "b": ["c"], "c": ["a", "d"], "d": [], "e": ["e"]}
    assert cycles(graph) == [("a", "b", "c"), ("e",)]


def test_pytest_is_strict() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    assert settings["filterwarnings"][0] == "error"
    assert settings["xfail_strict"] is True
    assert settings["timeout"] > 0
    assert "--strict-markers" in settings["addopts"]
    assert "--strict-config" in settings["addopts"]


def test_the_top_level_is_fixed() -> None:
    files = {
        "pyproject.toml",
        "README.md",
        "Makefile",
        "docker-compose.yml",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "LICENSE",
    }
    folders = {"docs", "examples", *LAYERS, "tests", "benchmarks"}
    unclaimed = {"build", "dist"}
    found = {path.name for path in ROOT.iterdir() if not path.name.startswith(".")}
    assert found - unclaimed == files | folders


GOOD = '__all__ = ("x",)\nx = 1\n'

BAD: dict[str, tuple[str, str, str]] = {
    "upwards": ("events/log.py", GOOD + "import projections.attempts\n", "may not import projections.attempts"),
    "upwards inside a function": ("projections/a.py", GOOD + "def x():\n    from engine import Engine\n", "engine"),
    "product imports tests": ("engine/a.py", GOOD + "from tests.fakes import x\n", "tests.fakes"),
    "type checking": ("engine/a.py", GOOD + "import typing\nif typing.TYPE_CHECKING:\n    pass\n", "TYPE_CHECKING"),
    "long file": ("engine/a.py", GOOD + "\n" * 399, "two nouns"),
    "long function": ("tests/a.py", "def x():\n" + "    pass\n" * 40, "x has 41 lines"),
    "big class": (
        "engine/a.py",
        GOOD + "class X:\n" + "".join(f"    def m{n}(self): ...\n" for n in range(13)),
        "13 public",
    ),
    "vague file": ("engine/utils.py", GOOD, "names no noun"),
    "vague file, disguised": ("engine/row_helpers.py", GOOD, "names no noun"),
    "vague folder": ("engine/common/rows.py", GOOD, "names no noun"),
    "loose parameter": ("engine/a.py", GOOD + "def x(row: dict[str, Any]) -> None: ...\n", "row: dict"),
    "loose list": ("engine/a.py", GOOD + "def x(rows: list[dict[str, object]]) -> None: ...\n", "rows: list"),
    "loose return": ("engine/a.py", GOOD + "def find_row() -> dict[str, Any] | None: ...\n", "find_row"),
    "bare dict": ("engine/a.py", GOOD + "class X:\n    def find(self, *, row: dict): ...\n", "row: dict"),
    "loose field": ("engine/a.py", GOOD + "class X:\n    row: Mapping[str, typing.Any]\n", "row: Mapping"),
    "asyncio": ("events/log.py", GOOD + "from asyncio import Lock\n", "AnyIO only"),
    "asyncio inside a function": ("engine/a.py", GOOD + "def x():\n    import asyncio.locks\n", "AnyIO only"),
    "trio": ("engine/a.py", GOOD + "import trio\n", "AnyIO only"),
    "aiosqlite": ("tests/a.py", "import aiosqlite\n", "aiosqlite"),
    "no __all__": ("engine/a.py", "x = 1\n", "no tuple __all__"),
    "list as __all__": ("engine/a.py", '__all__ = ["x"]\nx = 1\n', "no tuple __all__"),
    "computed __all__": ("engine/a.py", "__all__ = tuple(globals())\n", "no tuple __all__"),
    "named twice": ("engine/a.py", '__all__ = ("x", "x")\nx = 1\n', "twice"),
    "logic in __init__": ("engine/__init__.py", GOOD, "only re-exports"),
    "lazy __init__": ("engine/__init__.py", "__all__ = ()\ndef __getattr__(name): ...\n", "only re-exports"),
    "patch": ("tests/a.py", "from unittest.mock import patch\n", "banned"),
    "mock.patch": ("tests/a.py", "from unittest import mock\nmock.patch.object(x, 'y')\n", "banned"),
    "sleep": ("tests/a.py", "async def test_x():\n    await anyio.sleep(0.1)\n", "test_x sleeps"),
    "list state": ("engine/a.py", GOOD + "seen: list[str] = []\n", "seen is mutable"),
    "dict state": ("engine/a.py", GOOD + "cache = dict()\n", "cache is mutable"),
    "public table": ("engine/a.py", GOOD + "TABLE = {'a': 1}\n", "TABLE is mutable"),
    "changed table": ("engine/a.py", GOOD + "_TABLE = {'a': 1}\ndef f():\n    _TABLE['b'] = 2\n", "_TABLE is mutable"),
    "updated table": (
        "engine/a.py",
        GOOD + "_TABLE = {'a': 1}\ndef f():\n    _TABLE.update(b=2)\n",
        "_TABLE is mutable",
    ),
    "lock": ("engine/a.py", GOOD + "_LOCK = threading.Lock()\n", "_LOCK is mutable"),
    "global": ("engine/a.py", GOOD + "def f():\n    global x\n    x = 2\n", "global x"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_broken_rule_is_found(name: str) -> None:
    path, text, expected = BAD[name]
    found = violations(Source.of(path, text))
    assert len(found) == 1
    assert expected in found[0]


FINE: dict[str, tuple[str, str]] = {
    "downwards": ("engine/a.py", GOOD + "import events.log\nfrom projections import verify\n"),
    "arguments": ("engine/a.py", GOOD + "def x(arguments: dict[str, Any]) -> None: ...\n"),
    "schema of": ("engine/a.py", GOOD + "def schema_of(tool: Tool) -> dict[str, Any]: ...\n"),
    "typed dict": ("engine/a.py", GOOD + "def x(names: dict[str, tuple[str, str]]) -> None: ...\n"),
    "private": ("engine/a.py", GOOD + "def _x(row: dict[str, Any]) -> None: ...\n"),
    "bridge": ("events/bridge.py", GOOD + "import asyncio\n"),
    "foreign loop in a test": ("tests/a.py", "import asyncio\n"),
    "a sleeping tool": ("tests/a.py", "async def test_x():\n    async def slow():\n        await anyio.sleep(30)\n"),
    "a checkpoint": ("tests/a.py", "async def test_x():\n    await anyio.sleep(0)\n"),
    "constants": ("engine/a.py", GOOD + "_TABLE = {'a': 1}\nNAMES = ('a',)\nSET = frozenset({1})\n"),
    "proxy": ("engine/a.py", GOOD + "TABLE = MappingProxyType({'a': 1})\n"),
    "migration": ("events/migrations/versions/0001_first.py", "__all__ = ('revision',)\nrevision = '0001'\n"),
    "re-exports": ("engine/__init__.py", '"""Doc."""\nfrom engine.engine import Engine\n__all__ = ("Engine",)\n'),
}


@pytest.mark.parametrize("name", FINE)
def test_what_the_rules_allow_passes(name: str) -> None:
    path, text = FINE[name]
    assert violations(Source.of(path, text)) == []


def _import_graph() -> dict[str, set[str]]:
    known = {module_name(source.path) for source in SOURCES if source.ours}
    graph: dict[str, set[str]] = defaultdict(set)
    for source in SOURCES:
        if source.ours:
            importer = module_name(source.path)
            graph[importer] |= {module for _, module in imported_modules(source.tree)} & known
            names = {(module, f"{module}.{name}") for _, module, name in imported_names(source.tree)}
            graph[importer] |= {full for _, full in names if full in known}
            # `from package import module` reaches the module, not what the package re-exports.
            for module in {module for module, full in names if full in known}:
                if all(full in known for parent, full in names if parent == module):
                    graph[importer].discard(module)
    return dict(graph)
