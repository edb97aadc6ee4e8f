"""What ``calljournal reconcile`` found, printed."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from types import MappingProxyType
from typing import Final, get_args

import msgspec
from rich.text import Text

from engine.cli.durations import duration_text
from engine.cli.output import Output, note
from engine.cli.plain import one_line
from engine.stuck import ReconcileReport, StuckCall, StuckKind

__all__ = ("print_reconciliation",)

_COLOURS: Final = MappingProxyType(
    {
        "orphaned": "red",
        "expired": "red",
        "timed_out": "red",
        "held": "yellow",
        "resumable": "yellow",
        "unresumed": "cyan",
        "unconfirmed": "cyan",
    }
)


def print_reconciliation(output: Output, report: ReconcileReport) -> None:
    """Print a report: each call that is named, then how many there are; what could not be closed on standard error."""
    if output.as_json:
        for call in report.calls:
            output.record(msgspec.to_builtins(call))
        output.record(_summary(report))
    else:
        for line in _lines(report):
            output.console.print(line, soft_wrap=True)
    output.flush()
    for problem in report.problems:
        note(problem)


def _summary(report: ReconcileReport) -> dict[str, object]:
    said: dict[str, object] = msgspec.to_builtins(report)
    del said["calls"]
    return {"kind": "report", **said}


def _lines(report: ReconcileReport) -> Iterable[Text]:
    for kind in get_args(StuckKind):
        for call in report.of(kind):
            yield from _call_lines(call)
        if more := report.unlisted(kind):
            yield Text(f"… and {more} more {_words(kind)}", style=_COLOURS[kind])
    yield Text(str(report), style="bold" if report.calls else "green")


def _call_lines(call: StuckCall) -> Iterable[Text]:
    whose = "calls without a user" if call.user_id is None else f"user {call.user_id}"
    what = one_line(f"{call.tool_name}.{call.action_name} of {whose}")
    age = duration_text(timedelta(seconds=call.age))
    head = (_words(call.kind), f"bold {_COLOURS[call.kind]}"), "  ", (one_line(call.key), "bold cyan")
    yield Text.assemble(*head, f"  {what}  {call.state} for {age}")
    yield Text(f"  {one_line(call.done)}", style="dim")


def _words(kind: StuckKind) -> str:
    return kind.replace("_", " ")
