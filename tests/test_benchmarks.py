"""Each benchmark runs, small: what it says of this machine is not looked at."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from benchmarks.command import Beside, Measurement, measure
from benchmarks.compare import compare
from benchmarks.execute import Executing, measure_engine, measure_execute
from benchmarks.figures import Figure, Results
from benchmarks.log import measure_log
from benchmarks.mcp import measure_mcp
from benchmarks.net import measure_net
from benchmarks.parse import measure_parse
from benchmarks.prep import measure_prep
from benchmarks.reading import measure_reading
from benchmarks.reference import fingerprint_of, load_reference
from benchmarks.scale import FULL, QUICK, TINY, Scale
from benchmarks.subscribers import measure_subscribers
from benchmarks.table import print_load
from benchmarks.tools import measure_tools
from benchmarks.truncate import measure_truncate
from benchmarks.workload import EVENT_BYTES, make_pairs, prepared

__all__ = ()

EACH = pytest.mark.parametrize(
    "measurement",
    [
        measure_log,
        measure_execute,
        measure_subscribers,
        measure_reading,
        pytest.param(measure_tools, marks=pytest.mark.soak),
    ],
)


def run(measurement: Measurement, folder: Path, database: str) -> Results:
    results = measure([measurement], TINY, folder, (database,))
    assert len(results.figures) > 1
    assert all(value == value and value != float("inf") for figure in results.figures for value in figure.samples)
    assert list(folder.iterdir()) == []
    return results


@EACH
def test_on_sqlite(measurement: Measurement, tmp_path: Path) -> None:
    settings = run(measurement, tmp_path, "sqlite").environment["SQLite"]
    assert settings == "journal_mode=wal synchronous=full; of the bare loops: journal_mode=wal synchronous=2"


@EACH
@pytest.mark.soak
@pytest.mark.postgres
def test_on_postgres(measurement: Measurement, tmp_path: Path) -> None:
    settings = run(measurement, tmp_path, "postgres").environment["Postgres"]
    assert settings == "fsync=on synchronous_commit=on; of the bare loops: fsync=on synchronous_commit=on"


def test_without_a_database(capsys: pytest.CaptureFixture[str]) -> None:
    figures = measure_engine(TINY)
    percentiles = {"ms 50 %", "ms 95 %", "ms 99 %"}
    assert {figure.unit for figure in figures} == {"calls/s", "us a call", "us of CPU", "of asyncio", *percentiles}
    assert {figure.name for figure in figures if figure.goal == 60} == {"null://: execute, 1 at once, asyncio"}
    print_load(figures)
    table = capsys.readouterr().out.splitlines()
    assert table[0].split() == ["calls/s", "ms", "50", "%", "ms", "95", "%", "ms", "99", "%"]
    assert [line.partition(",  ")[0].split("  ")[0] for line in table[1:-1]] == [
        f"null://: execute, {callers} at once, {loop}" for callers in (1, 8) for loop in ("asyncio", "trio")
    ]


@pytest.mark.soak
def test_the_way_out_is_measured_beside_bare_httpx() -> None:
    goals = [figure for figure in measure_net(TINY) if figure.goal is not None]
    assert {figure.unit for figure in goals} == {"of bare"}
    assert len(goals) == 8


@pytest.mark.soak
def test_a_server_s_tool_is_measured_beside_the_bare_client() -> None:
    goals = [figure for figure in measure_mcp(TINY) if figure.goal is not None]
    assert {(figure.unit, figure.goal) for figure in goals} == {("of bare", 1.5)}
    assert len(goals) == 4


def test_so_many_calls_of_a_hundred_were_done_within_that_time() -> None:
    done = Executing(1.0, tuple(number / 1000 for number in range(1, 101)), 0.0)
    assert [done.within(share) for share in (0.5, 0.95, 0.99, 1.0)] == pytest.approx([51, 96, 100, 100])


SHORT = Scale(rounds=3, appends=64, slice=0.03, callers=(1,), events=1, postgres_events=1, result=1_000_000)

RATIOS = ("x reference", "of msgspec")


@pytest.mark.alone
@pytest.mark.parametrize(("measurement", "count"), [(measure_prep, 3), (measure_parse, 3), (measure_truncate, 2)])
def test_the_hot_path_keeps_half_of_its_figures_beside_our_own_plain_code(measurement: Beside, count: int) -> None:
    """CPU time beside CPU time, so that a busy machine fails nothing; half, so that only a regression does."""
    figures = [figure for figure in measurement(SHORT, load_reference(None)) if figure.unit in RATIOS]
    goals = [(figure, figure.goal) for figure in figures if figure.goal is not None]
    for figure, goal in goals:
        # The best of the rounds: what disturbs one of them is no regression.
        best = min(figure.samples) if figure.at_most else max(figure.samples)
        assert best <= 2 * goal if figure.at_most else best >= goal / 2, figure
    assert len(goals) == count


def test_what_differs_from_the_reference_is_not_measured(tmp_path: Path) -> None:
    file = tmp_path / "other.py"
    file.write_text("def finish(result):\n    return b'\"x\"', 'x', 'completed'\n")
    with pytest.raises(SystemExit, match="nothing to compare"):
        measure_truncate(TINY, load_reference(file))


def test_a_reference_is_loaded_as_it_stands_and_named_by_its_digest(tmp_path: Path) -> None:
    file = tmp_path / "other.py"
    file.write_text("def parse(call, names):\n    return 'x', 'y', call\n")
    assert load_reference(file).parse({}, {}) == ("x", "y", {})
    assert fingerprint_of(file).startswith("other.py ")
    assert fingerprint_of(None).startswith("benchmarks/plain.py ")
    with pytest.raises(SystemExit, match="no reference at"):
        load_reference(tmp_path / "nowhere.py")


def test_the_events_have_the_size_they_are_said_to_have() -> None:
    for pair in make_pairs(3):
        for version, event in enumerate(pair.events):
            assert len(prepared(event, version).events[0].data.encode()) == EVENT_BYTES


def test_every_caller_of_a_sample_appends_whole_calls() -> None:
    for scale in (FULL, QUICK, TINY):
        for callers in scale.callers:
            assert scale.appends_by(callers) % (2 * callers) == 0


def test_a_figure_says_whether_its_goal_is_reached() -> None:
    assert Figure.of("a", "/s", [1, 5, 3], 3).reached
    assert not Figure.of("a", "ms", [1, 5, 3], 2, at_most=True).reached
    assert Figure.of("a", "/s", [1]).reached is None


def test_two_runs_are_compared_figure_by_figure(tmp_path: Path) -> None:
    old = Results(environment={"python": "3.11"}, figures=(Figure.of("a", "/s", [1.0, 2.0]),))
    new = msgspec.structs.replace(
        old, environment={"python": "3.12"}, figures=(Figure.of("a", "/s", [3.0]), Figure.of("b", "/s", [1.0]))
    )
    new.save(str(tmp_path / "new.json"))
    lines = list(compare(old, Results.load(str(tmp_path / "new.json"))))
    assert lines[0] == "python: 3.11 -> 3.12"
    assert "x 2.00" in lines[1]
    assert "spread" not in lines[1]
    assert len(lines) == 2
