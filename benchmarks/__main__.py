"""Everything, one after another: ``python -m benchmarks [--quick] [--on sqlite] [--output FILE]``."""

from __future__ import annotations

from benchmarks.command import main
from benchmarks.execute import measure_engine, measure_execute
from benchmarks.log import measure_log
from benchmarks.reading import measure_reading
from benchmarks.subscribers import measure_subscribers

__all__ = ()

if __name__ == "__main__":
    main(measure_log, measure_execute, measure_subscribers, measure_reading, alone=[measure_engine])
