"""Figures as text."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from benchmarks.figures import Figure

__all__ = ("print_figures", "print_load")

_COLUMNS = ("calls/s", "ms 50 %", "ms 95 %", "ms 99 %")


def print_figures(environment: Mapping[str, str], figures: Sequence[Figure]) -> None:
    """Print where a run was made, and its figures: median, smallest and largest sample, goal."""
    lines = [f"{name}: {value}" for name, value in environment.items()]
    lines += [_line(figure) for figure in figures]
    sys.stdout.write("\n".join(lines) + "\n\n")
    sys.stdout.flush()


def print_load(figures: Sequence[Figure]) -> None:
    """Print a line for each load of calls that was measured: how many a second, and how long one of them took."""
    loads: dict[str, dict[str, Figure]] = {}
    for figure in figures:
        if figure.unit in _COLUMNS:
            loads.setdefault(figure.name, {})[figure.unit] = figure
    whole = {name: units for name, units in loads.items() if len(units) == len(_COLUMNS)}
    if not whole:
        return
    lines = [f"{'':40}" + "".join(f"{unit:>12}" for unit in _COLUMNS)]
    lines += [
        f"{name:40}" + "".join(f"{_number(units[unit].value):>12}" for unit in _COLUMNS)
        for name, units in whole.items()
    ]
    sys.stdout.write("\n".join(lines) + "\n\n")
    sys.stdout.flush()


def _line(figure: Figure) -> str:
    spread = f"{_number(min(figure.samples))} .. {_number(max(figure.samples))}"
    line = f"{figure.name:54} {_number(figure.value):>10} {figure.unit:10} {spread:24}"
    if figure.goal is None:
        return line.rstrip()
    return (
        f"{line} goal {'<=' if figure.at_most else '>='} {figure.goal:g}: {'reached' if figure.reached else 'MISSED'}"
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
