"""The command line of every benchmark: what to measure on, how much, and where to write it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import anyio
import msgspec

from benchmarks.databases import Database, databases, on_disk
from benchmarks.figures import Figure, Results
from benchmarks.machine import environment, fsync_figure
from benchmarks.reference import Reference, fingerprint_of, load_reference
from benchmarks.scale import FULL, QUICK, Scale
from benchmarks.table import print_figures, print_load
from engine.migration import CHAINS
from events.opening import open_log
from events.postgres import PostgresStore
from events.sqlite import SqliteStore
from projections.attempts import AttemptsProjection

__all__ = ("Alone", "Beside", "Measurement", "main", "measure", "measure_beside")

Measurement: TypeAlias = Callable[[Database, Scale], Sequence[Figure]]
Alone: TypeAlias = Callable[[Scale], Sequence[Figure]]
"""What is measured without a database."""
Beside: TypeAlias = Callable[[Scale, Reference], Sequence[Figure]]
"""What is measured beside a reference."""

_NOTHING: Final = Results(environment={}, figures=())


def main(*measurements: Measurement, alone: Sequence[Alone] = (), beside: Sequence[Beside] = ()) -> None:
    """Run measurements on each wanted database, print the figures, write them as JSON."""
    parser = argparse.ArgumentParser(description="Measure calljournal beside what the machine can do.")
    parser.add_argument("--quick", action="store_true", help="less of everything: under a minute")
    parser.add_argument("--on", choices=("sqlite", "postgres"), action="append", help="only on this database")
    parser.add_argument("--folder", type=Path, help="where the SQLite files go; by default /var/tmp")
    parser.add_argument("--reference", type=Path, help="measure the hot path beside this file, not beside our own")
    parser.add_argument("--output", default="", help="write the figures to this JSON file")
    chosen = parser.parse_args()
    scale = QUICK if chosen.quick else FULL
    named = tuple(chosen.on or ("sqlite", "postgres")) if measurements else ()
    hot = measure_beside(beside, scale, chosen.reference)
    rest = measure(measurements, scale, chosen.folder, named, alone) if measurements or alone else _NOTHING
    results = Results(environment={**hot.environment, **rest.environment}, figures=(*hot.figures, *rest.figures))
    print_load(results.figures)
    if chosen.output:
        Path(chosen.output).parent.mkdir(parents=True, exist_ok=True)
        results.save(chosen.output)
        sys.stdout.write(f"written to {chosen.output}\n")


def measure_beside(measurements: Sequence[Beside], scale: Scale, path: Path | None) -> Results:
    """Run what is measured beside a reference: the file's, or our own; print the figures as they come."""
    if not measurements:
        return _NOTHING
    reference = load_reference(path)
    settings = {**environment(), "reference": fingerprint_of(path)}
    print_figures(settings, [])
    figures: list[Figure] = []
    for measurement in measurements:
        found = measurement(scale, reference)
        print_figures({}, found)
        figures += found
    return Results(environment=settings, figures=tuple(figures))


def measure(
    measurements: Sequence[Measurement],
    scale: Scale,
    folder: Path | None,
    names: tuple[str, ...],
    alone: Sequence[Alone] = (),
) -> Results:
    """Run measurements on each named kind of database, print the figures as they come, and return them all."""
    settings = environment()
    with databases(folder, names) as kinds:
        figures = [fsync_figure(folder or on_disk(), scale.rounds, scale.slice)] if kinds else []
        for database in kinds:
            settings[database.name] = _durability(database)
        print_figures(settings, figures)
        for quiet in alone:
            found = quiet(scale)
            print_figures({}, found)
            figures += found
        for database in kinds:
            for measurement in measurements:
                found = measurement(database, scale)
                print_figures({}, found)
                figures += found
    return Results(environment=settings, figures=tuple(figures))


def _durability(database: Database) -> str:
    """Read back what makes a commit durable: of the product's own connection, and of the bare loops'."""
    url = database.fresh()
    bare = database.bare(url)
    try:
        return f"{anyio.run(_own_durability, url)}; of the bare loops: {bare.durability()}"
    finally:
        bare.close()
        database.drop(url)


async def _own_durability(url: str) -> str:
    log = await open_log(url, AttemptsProjection(), CHAINS)
    try:
        assert isinstance(log.store, SqliteStore | PostgresStore)
        settings = msgspec.structs.asdict(await log.store.durability())
    finally:
        await log.aclose()
    return " ".join(f"{name}={value}" for name, value in settings.items())
