"""The ledger of cases: every numbered behaviour and every field case, who owns it, and the tests that pin it.

``tests/cases.csv`` is written from here and from the names of the tests, never by hand: ``make ledger``. A test says
which rows it pins by its name: ``test_behaviour_075_…``, ``test_case_parse_06_…``, several as ``…_100_101_…``.
"""

from __future__ import annotations

import ast
import csv
import io
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import msgspec

__all__ = ("FINISHED", "LEDGER", "OWNERS", "CaseTest", "case_tests", "ids_in_name", "render", "shared_ids")

TESTS = Path(__file__).parent
LEDGER = TESTS / "cases.csv"

FINISHED = ("A", "B", "C", "D")
"""Parts of the product that are built: each row of theirs has a test."""

HEAVY = "later: heavy tools (sandbox, remote_device)"

_BEHAVIOUR: dict[str, tuple[tuple[int, ...], ...]] = {
    "A": (
        (70, 72, 73, 75, 76, 79, 82, 83, 86, 88, 89, 90, 91, 92, 94, 95, 96, 97, 98, 99),
        (100, 101, 102, 104, 105, 106, 107, 108, 113, 114, 115, 116, 118),
        (121, 122, 123, 124, 125, 127),
    ),
    "B": (
        (1, 2, 3, 4, 5, 6, 8, 9, 11, 12, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 25, 27, 28, 29),
        (30, 31, 32, 33, 34, 35, 36, 38, 39, 40, 41, 42, 43, 44),
    ),
    "C": (
        (45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 58, 59),
        (60, 61, 63, 65, 66, 67, 68, 69),
        (111, 119),
        (137, 138, 139),
    ),
    "D": ((80, 81), (130, 131, 132, 133, 136)),
    HEAVY: ((56,),),
}
_FIELD: dict[str, dict[str, tuple[int, ...]]] = {
    "A": {"EXECUTE": (1, 3, 4, 5, 7), "JOURNAL": (2, 3, 5, 7, 8), "OTEL": (1,)},
    "B": {
        "PARSE": (1, 5, 6, 7, 8, 9, 10, 11, 13),
        "SCHEMA": (1, 2, 3, 5, 6, 7, 8),
        "STREAM": (2, 3, 4),
        "TRUNCATE": (2, 3),
    },
    "C": {"APPROVAL": (1, 2, 3, 5, 6, 7, 11), "JOURNAL": (6,)},
    "D": {"API": (1, 2, 3, 5, 8, 9, 11, 12), "MCP": (1, 2, 3, 4, 7, 8, 9, 10, 13), "OTEL": (3,)},
    HEAVY: {"SANDBOX": (2, 3, 4, 6)},
}


def _owners() -> Iterator[tuple[str, str]]:
    for owner, sections in _BEHAVIOUR.items():
        yield from ((f"BEHAVIOUR-{number:03}", owner) for section in sections for number in section)
    for owner, areas in _FIELD.items():
        yield from ((f"{area}-{number:02}", owner) for area, numbers in areas.items() for number in numbers)


OWNERS: dict[str, str] = dict(sorted(_owners(), key=lambda row: (not row[0].startswith("BEHAVIOUR"), row[0])))
"""Every id there is, to the part of the product that owns it."""


class CaseTest(msgspec.Struct, frozen=True):
    """A test that pins cases: its pytest node, the ids its name says, and what would skip it, if anything."""

    node: str
    ids: tuple[str, ...]
    skips: tuple[str, ...]


def ids_in_name(name: str) -> tuple[str, ...]:
    """Return the ids that a test's name says it pins; a name that starts so but says none is a mistake.

    :raises ValueError: if the name starts with ``test_behaviour`` or ``test_case_`` but names no number
    """
    if found := re.match(r"test_behaviour_(\d{3}(?:_\d{3})*)(?=_|$)", name):
        return tuple(f"BEHAVIOUR-{number}" for number in found[1].split("_"))
    if found := re.match(r"test_case_([a-z0-9]*[a-z])_(\d\d(?:_\d\d)*)(?=_|$)", name):
        return tuple(f"{found[1].upper()}-{number}" for number in found[2].split("_"))
    if name.startswith(("test_behaviour", "test_case_")):
        raise ValueError(f"{name} names no case; write test_behaviour_075_… or test_case_parse_06_…")
    return ()


def case_tests(folder: Path = TESTS) -> list[CaseTest]:
    """Return every test below a folder whose name says a case, in the order of their nodes."""
    found: list[CaseTest] = []
    for path in sorted(folder.rglob("test_*.py")):
        tree = ast.parse(path.read_text())
        marks = tuple(_skipping(node) for node in tree.body if isinstance(node, ast.Assign) and _is_pytestmark(node))
        for prefix, function in _test_functions(tree.body, path.relative_to(folder.parent).as_posix()):
            if ids := ids_in_name(function.name):
                skips = tuple(text for text in (*marks, _skipping(function)) if text)
                found.append(CaseTest(f"{prefix}::{function.name}", ids, skips))
    return found


def _test_functions(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _test_functions(node.body, f"{prefix}::{node.name}")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield prefix, node


def _is_pytestmark(node: ast.Assign) -> bool:
    return [ast.unparse(target) for target in node.targets] == ["pytestmark"]


def _skipping(node: ast.AST) -> str:
    """Return what in a test (decorators, parameters, body) skips it or excuses its failure; empty: nothing."""
    excuses = ("skip", "skipif", "xfail", "importorskip")
    found = [n for n in ast.walk(node) if isinstance(n, ast.Attribute) and n.attr in excuses]
    return ast.unparse(found[0]) if found else ""


def render(tests: list[CaseTest]) -> str:
    """Return the ledger's text."""
    nodes: dict[str, list[str]] = defaultdict(list)
    for test in tests:
        for identity in test.ids:
            nodes[identity].append(test.node)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("id", "owner", "test"))
    writer.writerows((identity, owner, ";".join(sorted(nodes[identity]))) for identity, owner in OWNERS.items())
    return text.getvalue()


def shared_ids(behaviour: str, cases: str) -> set[str]:
    """Return the ids in the texts of the two pages that the product is built by."""
    rows = re.findall(r"^\| (\d+) \|", behaviour, re.MULTILINE)
    return {f"BEHAVIOUR-{int(row):03}" for row in rows} | set(re.findall(r"^- id: (\S+)", cases, re.MULTILINE))


if __name__ == "__main__":
    LEDGER.write_text(render(case_tests()))
