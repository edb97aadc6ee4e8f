"""Everything, one after another: ``python -m benchmarks [--quick] [--on sqlite] [--reference FILE]``."""

from __future__ import annotations

from benchmarks.command import main
from benchmarks.execute import measure_engine, measure_execute
from benchmarks.log import measure_log
from benchmarks.mcp import measure_mcp
from benchmarks.net import measure_net
from benchmarks.parse import measure_parse
from benchmarks.prep import measure_prep
from benchmarks.reading import measure_reading
from benchmarks.subscribers import measure_subscribers
from benchmarks.tools import measure_tools
from benchmarks.truncate import measure_truncate

__all__ = ()

if __name__ == "__main__":
    main(
        measure_log,
        measure_execute,
        measure_subscribers,
        measure_reading,
        measure_tools,
        alone=[measure_engine, measure_net, measure_mcp],
        beside=[measure_prep, measure_parse, measure_truncate],
    )
