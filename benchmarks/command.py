"""The command line of every benchmark: what to measure on, how much, and where to write it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from benchmarks.databases import Database, databases
from benchmarks.figures import Figure, Results
from benchmarks.machine import environment, fsync_figure
from benchmarks.scale import FULL, QUICK, Scale
from benchmarks.table import print_figures

__all__ = ("Alone", "Measurement", "main", "measure")

Measurement: TypeAlias = Callable[[Database, Scale], Sequence[Figure]]
Alone: TypeAlias = Callable[[Scale], Sequence[Figure]]
"""What is measured without a database."""


def main(*measurements: Measurement, alone: Sequence[Alone] = ()) -> None:
    """Run measurements on each wanted database, print the figures, write them as JSON."""
    parser = argparse.ArgumentParser(description="Measure calljournal beside what the machine can do.")
    parser.add_argument("--quick", action="store_true", help="less of everything: under a minute")
    parser.add_argument("--on", choices=("sqlite", "postgres"), action="append", help="only on this database")
    parser.add_argument("--folder", type=Path, help="where the databases go; by default where temporary files go")
    parser.add_argument("--output", default="", help="write the figures to this JSON file")
    chosen = parser.parse_args()
    scale = QUICK if chosen.quick else FULL
    results = measure(measurements, scale, chosen.folder, tuple(chosen.on or ("sqlite", "postgres")), alone)
    if chosen.output:
        Path(chosen.output).parent.mkdir(parents=True, exist_ok=True)
        results.save(chosen.output)
        sys.stdout.write(f"written to {chosen.output}\n")


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
        figures = [fsync_figure(Path(folder or "/tmp"), scale.rounds, scale.slice)]
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
    url = database.fresh()
    bare = database.bare(url)
    try:
        return bare.durability()
    finally:
        bare.close()
        database.drop(url)
