"""Events and calls as people read them on a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final

from rich.table import Table
from rich.text import Text

from engine.cli.catalogue import CatalogueEntry
from engine.cli.finding import Finding
from engine.cli.plain import json_text, one_line
from events.masking import masked
from events.transitions import describe, kind_of
from events.types import (
    Approved,
    Confirmed,
    Denied,
    Executed,
    Failed,
    LateOutcome,
    Paused,
    Proposed,
    Resumed,
    ToolEvent,
)
from projections.row import AttemptRow

__all__ = ("attempts_table", "catalogue_table", "event_line", "finding_lines", "table_of")

_RESULT: Final = 400
_COLOURS: Final = MappingProxyType(
    {
        "proposed": "cyan",
        "paused": "yellow",
        "denied": "red",
        "executed": "green",
        "failed": "red",
        "approved": "green",
        "resumed": "cyan",
        "confirmed": "blue",
        "late_outcome": "magenta",
        "error": "yellow",
    }
)


def event_line(event: ToolEvent, width: int, moment: datetime | None = None, replayed: bool = False) -> Text:
    """Return an event as one line; what a person must act on is whole, the rest is cut to the width."""
    kind = kind_of(event)
    line = Text()
    line.append(f"{event.position or '-':>6} ", style="dim")
    if moment is not None:
        line.append(f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} ", style="dim")
    shown = f"executed ({event.status})" if isinstance(event, Executed) and event.status == "error" else kind
    colour = _COLOURS["error" if shown != kind else kind]
    line.append(f"{shown:<10}", style="dim" if replayed else f"bold {colour}")
    line.append(f" {one_line(event.llm_name) or '(no name)'}", style="bold")
    detail = one_line(_detail(event))
    if detail:
        line.append(f"  {detail}")
    if replayed:
        line.append("  (recorded before)", style="dim italic")
    if not isinstance(event, Failed | Denied | Paused):
        line.truncate(max(width, 40), overflow="ellipsis")
    return line


def _detail(event: ToolEvent) -> str:
    match event:
        case Proposed():
            return json_text(masked(event.arguments)) if event.raw is None or event.note else masked(event.raw)[:1000]
        case Executed():
            return f"{event.preview}  [{_seconds(event.duration)}]"
        case Failed():
            return f"{event.kind}: {event.message}"
        case Denied():
            return f"{event.reason}: {event.message}"
        case Paused():
            return f"{event.pause_type}: {event.reason}"
        case Approved():
            return f"by {event.by}"
        case Resumed():
            return f"by {event.worker}"
        case LateOutcome():
            return kind_of(event.outcome)
        case Confirmed():
            return ""


def _seconds(duration: float) -> str:
    return f"{duration * 1000:.1f} ms" if duration < 1 else f"{duration:.1f} s"


def attempts_table(rows: Iterable[AttemptRow], all_tenants: bool) -> Table:
    """Return the state of calls as a table; keys are whole, results are cut."""
    table = Table(box=None, pad_edge=False, header_style="bold", expand=True)
    table.add_column("position", min_width=8, no_wrap=True)
    if all_tenants:
        table.add_column("user", max_width=20, overflow="fold")
    table.add_column("state", min_width=9)
    table.add_column("call", ratio=3, overflow="fold")
    table.add_column("result", ratio=2, no_wrap=True)
    for row in rows:
        shown = row.error if row.error is not None else json_text(row.result) if row.result_status else ""
        state = row.status if row.attempt.phase is None else describe(row.attempt)
        table.add_row(
            Text(str(row.position), style="dim"),
            *((Text(one_line(row.user_id or "-")),) if all_tenants else ()),
            Text(state, style=_COLOURS["error" if row.result_status == "error" else row.status]),
            Text.assemble((one_line(f"{row.tool_name}.{row.action_name}"), "bold"), f"\n{one_line(row.key)}"),
            Text(one_line(shown[:_RESULT])),
        )
    return table


def catalogue_table(entries: Iterable[CatalogueEntry]) -> Table:
    """Return the catalogue as a table."""
    table = table_of("tool", "effect", "default", "needs")
    table.add_column("actions")
    table.add_column("about")
    for entry in entries:
        marks = [word for word, holds in (("internal", entry.internal), ("a user", entry.user_scoped)) if holds]
        away = "" if entry.unavailable is None else f"  Cannot work at present: {entry.unavailable}"
        table.add_row(
            Text(one_line(entry.name), style="bold"),
            entry.effect,
            _default(entry),
            Text(one_line(", ".join((*marks, *entry.needs)))),
            Text(one_line(", ".join(entry.actions))),
            Text(one_line(f"{entry.description}{away}"), style="dim"),
        )
    return table


def _default(entry: CatalogueEntry) -> str:
    if entry.standing in ("off", "denied"):
        return entry.standing
    words = [word for word, holds in (("yes", entry.default_on), ("asks", entry.standing == "ask")) if holds]
    return ", ".join(words)


def finding_lines(finding: Finding) -> Iterable[Text]:
    """Return a finding as a line, and what to do about it as a second one."""
    mark, style = {"ok": ("ok", "green"), "warning": ("warning", "yellow"), "fault": ("FAULT", "bold red")}[
        finding.level
    ]
    yield Text.assemble((f"{mark:<8}", style), (one_line(finding.subject), "bold"), f"  {one_line(finding.message)}")
    if finding.advice:
        yield Text(f"        {one_line(finding.advice)}", style=style)


def table_of(*titles: str) -> Table:
    """Return an empty table with these columns."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in titles:
        table.add_column(title, overflow="fold")
    return table
