"""A mutant: one named patch that breaks one promise of the design on purpose, and the tests that must notice.

A patch is a file ``NAME.patch`` of this folder. Its header, up to the first empty line, says::

    Invariant: 3
    Broken: the append function takes no fence, so a reader goes past what is not committed yet
    Only: postgres
    Red: tests/events/test_postgres_order.py::test_case_journal_05_a_follower_waits_for_the_event_that_commits_late

``Invariant`` is the number of a row of :data:`INVARIANTS`. ``Only`` may be left out; it is what pytest's ``-k`` takes,
for a patch that breaks only one store. ``Red`` comes once per test; every variant of it that ``Only`` leaves must fail.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Final

import msgspec

from tests.shape import LAYERS

__all__ = ("INVARIANTS", "PATCHES", "Hunk", "Mutant", "hunks", "mutants", "read_mutant")

PATCHES: Final = Path(__file__).parent

INVARIANTS: Final = MappingProxyType(
    {
        1: "an event that was yielded with a position is in the log after kill -9, once",
        2: "the fold of the log is the live table",
        3: "no reader sees a position before a lower one, or misses one",
        4: "no tenant's action changes another tenant's row or reveals that it exists",
        5: "a terminal attempt never changes, and no tool runs twice for one key and digest",
        6: "no call runs that the gate would have stopped, whatever fails",
        7: "no secret appears in the log, a span, a log line or an error",
    }
)
"""What must always hold, by number."""

_HEADER: Final = frozenset({"Invariant", "Broken", "Only", "Red"})


class Mutant(msgspec.Struct, frozen=True):
    """One patch, as its header has it.

    :ivar tests: node ids without parameters, as pytest names them
    :ivar only: an expression that chooses among their variants; empty: all
    """

    path: Path
    invariant: int
    broken: str
    tests: tuple[str, ...]
    only: str = ""

    @property
    def name(self) -> str:
        """What the patch is called."""
        return self.path.stem


class Hunk(msgspec.Struct, frozen=True):
    """One place that a patch changes: the file, and the lines that must stand there, the changed ones among them."""

    file: str
    before: str


def read_mutant(path: Path) -> Mutant:
    """Return the mutant of a patch file.

    :raises ValueError: if its header cannot be read; the text says where and why
    """
    told: list[tuple[str, str]] = []
    for line in path.read_text().partition("\n\n")[0].splitlines():
        word, colon, said = line.partition(":")
        if word not in _HEADER or not colon or not said.strip():
            raise ValueError(f"{path.name}: {line!r} is no line of a header; see tests/mutants/mutant.py")
        told.append((word, said.strip()))
    once = dict(told)
    missing = {"Invariant", "Broken", "Red"} - once.keys()
    if missing or not once["Invariant"].isdecimal() or int(once["Invariant"]) not in INVARIANTS:
        raise ValueError(f"{path.name}: the header needs an Invariant from 1 to 7, a line Broken, and a Red per test")
    tests = tuple([said for word, said in told if word == "Red"])
    return Mutant(path, int(once["Invariant"]), once["Broken"], tests, once.get("Only", ""))


def mutants(names: tuple[str, ...] = ()) -> list[Mutant]:
    """Return all mutants, or those of these names, by invariant.

    :raises ValueError: if there is none of a name, or a header cannot be read
    """
    found = {path.stem: path for path in PATCHES.glob("*.patch")}
    if unknown := sorted(set(names) - found.keys()):
        raise ValueError(f"there is no mutant {', '.join(unknown)}; there are: {', '.join(sorted(found))}")
    chosen = [read_mutant(found[name]) for name in sorted(names or found)]
    return sorted(chosen, key=lambda mutant: mutant.invariant)


def hunks(mutant: Mutant) -> Iterator[Hunk]:
    """Yield the places that a patch changes.

    :raises ValueError: if it changes anything but the product
    """
    file, before = "", [""]
    for line in [*mutant.path.read_text().partition("\n\n")[2].splitlines(), "@@"]:
        if not line.startswith(("@@", "--- a/")):
            before += [line[1:]] if line.startswith((" ", "-")) else []
            continue
        if len(before) > 1:
            yield Hunk(file, "\n".join([*before, ""]))
        before = [""]
        if line.startswith("--- a/"):
            file = line.removeprefix("--- a/")
            if not file.startswith(LAYERS):
                raise ValueError(f"{mutant.path.name}: {file} is no file of {', '.join(LAYERS)}")
