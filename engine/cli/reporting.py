"""What ``verify`` and ``rebuild`` found, printed."""

from __future__ import annotations

import msgspec

from engine.cli.output import Output
from engine.cli.plain import one_line
from projections.report import Report

__all__ = ("print_report",)


def print_report(output: Output, report: Report, agreed: str) -> None:
    """Print a report: a line per problem, then the outcome."""
    if output.as_json:
        output.record(msgspec.to_builtins(report))
        output.flush()
        return
    console = output.console
    for problem in report.problems:
        console.print(one_line(str(problem)), style="red", soft_wrap=True)
    counted = f"{report.events} events of {report.streams} calls, up to position {report.head}"
    if report.ok:
        console.print(f"ok: {agreed} ({counted})", style="green", soft_wrap=True)
    else:
        count = len(report.problems) + report.more
        said = "1 problem" if count == 1 else f"{count} problems"
        console.print(f"not ok: {said} ({counted})", style="bold red", soft_wrap=True)
    if report.unknown:
        console.print(f"{report.unknown} events are of a newer release and were not looked into", style="yellow")
    if report.seal is not None:
        console.print(f"sealed up to {report.sealed}: {report.seal}", style="dim", soft_wrap=True)
    output.flush()
