"""The machine: what it is, and how fast it makes bytes durable."""

from __future__ import annotations

import os
import platform
import sqlite3
import time
from importlib.metadata import version
from pathlib import Path

from benchmarks.figures import Figure

__all__ = ("environment", "fsync_figure", "resident_megabytes")


def environment() -> dict[str, str]:
    """Return what a figure depends on besides the code."""
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": str(os.cpu_count()),
        "load": f"{os.getloadavg()[0]:.1f}",
        "sqlite": sqlite3.sqlite_version,
        **{name: version(name) for name in ("anyio", "trio", "msgspec", "sqlalchemy", "asyncpg")},
    }


def fsync_figure(folder: Path, rounds: int, seconds: float) -> Figure:
    """Write 4 KiB and fdatasync, one after another; the rate no single durable commit can exceed."""
    return Figure.of("disk: 4 KiB and fdatasync", "/s", [_fsyncs(folder / "fsync", seconds) for _ in range(rounds)])


def _fsyncs(path: Path, seconds: float) -> float:
    block = b"x" * 4096
    count = 0
    with path.open("wb", buffering=0) as file:
        started = time.perf_counter()
        while (elapsed := time.perf_counter() - started) < seconds or not count:
            file.write(block)
            os.fdatasync(file.fileno())
            count += 1
    path.unlink()
    return count / elapsed


def resident_megabytes() -> float:
    """Return this process's resident set."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
