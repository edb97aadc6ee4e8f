"""Every promise has a mutant, every mutant still applies, and each is noticed by the tests that it names."""

from __future__ import annotations

import ast
import difflib
import shutil
from collections import Counter
from functools import lru_cache
from pathlib import Path

import pytest

from tests.mutants.mutant import INVARIANTS, Mutant, hunks, mutants, read_mutant
from tests.mutants.trial import NoTrial, copied, patched, shares, trial
from tests.shape import ROOT

__all__ = ()

MUTANTS = mutants()

each = pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)


def test_every_invariant_has_two_mutants() -> None:
    counted = Counter(mutant.invariant for mutant in MUTANTS)
    assert {number: counted[number] for number in INVARIANTS if counted[number] < 2} == {}


@each
def test_it_breaks_the_product_at_one_place_each_and_leaves_it_readable(mutant: Mutant, tmp_path: Path) -> None:
    changed = {hunk.file for hunk in hunks(mutant)}
    assert changed
    for file in changed:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / file, tmp_path / file)
    # What stands there must stand there once: else git might find another place when lines have moved.
    for hunk in hunks(mutant):
        assert f"\n{(ROOT / hunk.file).read_text()}".count(hunk.before) == 1, hunk
    patched(tmp_path, mutant)
    for file in changed:
        text = (tmp_path / file).read_text()
        assert text != (ROOT / file).read_text()
        if file.endswith(".py"):
            ast.parse(text)


@each
def test_the_tests_that_it_names_are_there(mutant: Mutant) -> None:
    assert [test for test in mutant.tests if test not in named_in(test.partition("::")[0])] == []


@lru_cache(maxsize=64)
def named_in(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / file).read_text())
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return frozenset(f"{file}::{function.name}" for function in functions)


def test_every_variant_that_counts_runs_unpatched_too() -> None:
    shared = [(test, share.only) for share in shares(MUTANTS) for test in share.tests]
    assert len(set(shared)) == len(shared)
    named = {(test, mutant.only) for mutant in MUTANTS for test in mutant.tests}
    assert {(test, only) for test, only in named if (test, only) not in shared and (test, "") not in shared} == set()


@pytest.mark.soak
@pytest.mark.timeout(600)
@each
def test_its_tests_notice_it(mutant: Mutant) -> None:
    assert [finding for finding in trial(mutant) if finding.colour != "red"] == []


# What a trial makes of patches, good and bad.

SUBJECT = "engine/gate.py"
TEST = "tests/engine/test_gate.py::test_a_denylist_says_so"
LINE = '_DENYLIST: Final = "denylist"\n'
CALLED = "    need = _need(question)\n"


def made_up(folder: Path, old: str, new: str) -> Mutant:
    """Write a patch that puts something in the place of a line, and return its mutant."""
    before = (ROOT / SUBJECT).read_text()
    assert before.count(old) == 1
    old_lines, new_lines = before.splitlines(keepends=True), before.replace(old, new).splitlines(keepends=True)
    patch = difflib.unified_diff(old_lines, new_lines, f"a/{SUBJECT}", f"b/{SUBJECT}", n=1)
    path = folder / "made_up.patch"
    path.write_text("".join([f"Invariant: 6\nBroken: something\nRed: {TEST}\n\n", *patch]))
    return read_mutant(path)


@pytest.mark.parametrize(
    ("old", "new", "colour", "why"),
    [
        (LINE, '_DENYLIST: Final = "allowlist"\n', "red", "AssertionError"),
        (LINE, f"{LINE}_MORE: Final = 1\n", "GREEN", "passed"),
        (CALLED, "    need = no_such_function(question)\n", "broken", "NameError"),
    ],
    ids=["noticed", "survives", "nonsense"],
)
def test_a_trial_tells_a_promise_that_is_broken_from_nonsense(
    tmp_path: Path, old: str, new: str, colour: str, why: str
) -> None:
    (finding,) = trial(made_up(tmp_path, old, new))
    assert (finding.test, finding.colour) == (TEST, colour)
    assert why in finding.why


def test_what_cannot_be_imported_is_no_trial(tmp_path: Path) -> None:
    with pytest.raises(NoTrial, match="pytest could not run its tests"):
        trial(made_up(tmp_path, LINE, "_DENYLIST: Final = (\n"))


def test_a_patch_that_does_not_apply_is_no_trial(tmp_path: Path) -> None:
    mutant = made_up(tmp_path, LINE, "")
    mutant.path.write_text(mutant.path.read_text().replace("-_DENYLIST", "-_OTHER"))
    with pytest.raises(NoTrial, match=r"^made_up.patch does not apply any more: patch failed: engine/gate.py"):
        trial(mutant)


def test_a_copy_is_the_sources_and_is_gone_afterwards() -> None:
    with copied() as tree:
        assert (tree / SUBJECT).read_text() == (ROOT / SUBJECT).read_text()
    assert not tree.exists()


@pytest.mark.parametrize(
    "header",
    [
        "Invariant: 6\nBroken: x",
        "Invariant: 8\nBroken: x\nRed: y",
        "Invariant: six\nBroken: x\nRed: y",
        "Invariant: 6\nRed: y",
        "Invariant: 6\nBroken:\nRed: y",
        "Invariant: 6\nBroken: x\nRed: y\nColour: blue",
        "--- a/engine/gate.py",
    ],
)
def test_a_header_that_lacks_something_is_refused(tmp_path: Path, header: str) -> None:
    path = tmp_path / "bad.patch"
    path.write_text(f"{header}\n\n--- a/engine/gate.py\n")
    with pytest.raises(ValueError, match=r"^bad\.patch: "):
        read_mutant(path)


def test_a_patch_changes_the_product_alone(tmp_path: Path) -> None:
    path = tmp_path / "bad.patch"
    change = "--- a/tests/shape.py\n+++ b/tests/shape.py\n@@ -1 +1 @@\n-a\n+b\n"
    path.write_text(f"Invariant: 6\nBroken: x\nRed: y\n\n{change}")
    with pytest.raises(ValueError, match="is no file of events, projections, engine"):
        list(hunks(read_mutant(path)))


def test_a_mutant_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(ValueError, match=r"there is no mutant no_such_mutant; there are: .*no_fence"):
        mutants(("no_such_mutant",))
