"""Every behaviour and every field case has a test or an owner, and none is skipped."""

from __future__ import annotations

import csv
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.cases_ledger import FINISHED, LEDGER, OWNERS, case_tests, ids_in_name, render, shared_ids
from tests.cases_plugin import COLLECTED
from tests.shape import ROOT

SHARED = ROOT.parent / "shared"


def rows() -> list[dict[str, str]]:
    with LEDGER.open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_ledger_is_up_to_date() -> None:
    assert LEDGER.read_text() == render(case_tests()), "run `make ledger`"


def test_every_id_is_there_once() -> None:
    counted = Counter(row["id"] for row in rows())
    assert counted == dict.fromkeys(OWNERS, 1)


@pytest.mark.shared
def test_the_ids_are_those_of_the_pages() -> None:
    pages = [SHARED / "BEHAVIOUR.md", SHARED / "CASES.md"]
    if missing := [page.name for page in pages if not page.exists()]:
        pytest.skip(f"no {' and '.join(missing)} beside the repository: the ids are checked against our own list only")
    assert shared_ids(pages[0].read_text(), pages[1].read_text()) == set(OWNERS)


def test_what_is_built_has_tests() -> None:
    untested = [row["id"] for row in rows() if row["owner"] in FINISHED and not row["test"]]
    assert untested == []


def test_no_test_names_a_case_that_does_not_exist() -> None:
    unknown = {test.node: set(test.ids) - set(OWNERS) for test in case_tests()}
    assert {node: ids for node, ids in unknown.items() if ids} == {}


def test_no_case_is_skipped_or_excused() -> None:
    excused = {test.node: test.skips for test in case_tests() if test.skips}
    assert excused == {}


def test_every_case_test_is_collected(pytestconfig: pytest.Config) -> None:
    """Whatever pytest would not collect (a fixture's file, a class of another name) pins nothing."""
    named = {node for row in rows() for node in row["test"].split(";") if node}
    assert named - collected(pytestconfig) == set()


def collected(config: pytest.Config) -> frozenset[str]:
    """Return the nodes of the whole suite: this run's, or another's where this one was asked for a part."""
    if config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        return config.stash[COLLECTED]
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert listing.returncode == 0, listing.stdout[-3000:] + listing.stderr[-3000:]
    return frozenset(line.partition("[")[0] for line in listing.stdout.splitlines() if "::" in line)


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("test_behaviour_075_preset", ("BEHAVIOUR-075",)),
        ("test_behaviour_100_101", ("BEHAVIOUR-100", "BEHAVIOUR-101")),
        ("test_case_parse_06_big_integers", ("PARSE-06",)),
        ("test_case_journal_05_07_followers_of_2_writers", ("JOURNAL-05", "JOURNAL-07")),
        ("test_cases_are_counted", ()),
        ("test_other", ()),
    ],
)
def test_names_say_their_ids(name: str, ids: tuple[str, ...]) -> None:
    assert ids_in_name(name) == ids


@pytest.mark.parametrize("name", ["test_behaviour_75_preset", "test_behaviour_preset", "test_case_parse_6_x"])
def test_a_mistyped_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        ids_in_name(name)


SKIPPED = """
import pytest

@pytest.mark.skip(reason="later")
def test_behaviour_070_marked(): ...

@pytest.mark.xfail(reason="later", strict=False)
def test_behaviour_072_excused(): assert False

@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.skip)])
def test_behaviour_073_one_of_two(n): ...

def test_case_execute_01_skips_itself():
    pytest.skip("no server")

def test_no_case_may_be_skipped():
    pytest.skip("fine")

def test_behaviour_075_runs(): ...
"""


def test_skips_are_found_in_the_source(tmp_path: Path) -> None:
    folder = tmp_path / "tests"
    folder.mkdir()
    (folder / "test_skipped.py").write_text(SKIPPED)
    found = {test.node.rpartition("_0")[2][:2]: bool(test.skips) for test in case_tests(folder)}
    assert found == {"70": True, "72": True, "73": True, "1_": True, "75": False}


def test_skips_fail_the_run(tmp_path: Path) -> None:
    (tmp_path / "test_skipped.py").write_text(SKIPPED)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "tests.cases_plugin",
        "-p",
        "no:cacheprovider",
        str(tmp_path),
    ]
    run = subprocess.run(
        [*command, "-c", "/dev/null", "--rootdir", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert run.returncode == 1, run.stdout + run.stderr
    assert "2 failed, 2 passed, 1 skipped, 2 errors" in run.stdout
    assert "pins EXECUTE-01 and may not be skipped: no server" in run.stdout
