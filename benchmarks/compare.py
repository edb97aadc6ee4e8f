"""Two result files side by side: ``python -m benchmarks.compare old.json new.json``."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from benchmarks.figures import Figure, Results

__all__ = ("compare",)


def compare(old: Results, new: Results) -> Iterator[str]:
    """Yield a line per figure that both runs have, with how it changed, and a line per setting that differs."""
    for name in old.environment.keys() | new.environment.keys():
        before, after = old.environment.get(name), new.environment.get(name)
        if before != after:
            yield f"{name}: {before} -> {after}"
    known = {(figure.name, figure.unit): figure for figure in old.figures}
    for figure in new.figures:
        before_figure = known.get((figure.name, figure.unit))
        if before_figure is not None:
            yield _line(before_figure, figure)


def _line(old: Figure, new: Figure) -> str:
    ratio = new.value / old.value if old.value else float("nan")
    apart = max(old.samples) < min(new.samples) or max(new.samples) < min(old.samples)
    remark = "" if apart else "  (within the spread)"
    return f"{new.name:54} {old.value:12.4g} -> {new.value:<12.4g} {new.unit:10} x {ratio:.2f}{remark}"


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python -m benchmarks.compare OLD.json NEW.json")
    sys.stdout.writelines(f"{line}\n" for line in compare(*map(Results.load, sys.argv[1:])))
