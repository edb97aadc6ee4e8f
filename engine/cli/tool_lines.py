"""Tool rows as the command line prints them: as records for programs, as lines for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from rich.table import Table
from rich.text import Text

from engine.built_ins import BuiltIn
from engine.cli.plain import json_text, one_line
from engine.cli.rendering import table_of
from engine.row_definition import KeptRow, RowVersion
from engine.rows import ToolRow
from engine.sharing import Share

__all__ = (
    "action_names",
    "built_in_line",
    "built_in_record",
    "row_line",
    "row_lines",
    "row_record",
    "rows_table",
    "share_record",
    "version_lines",
)

_SHOWN = 30
_IN_WORDS = ("name", "active", "require_approval")
_APPROVAL = {None: "asks as its tool says", True: "asks each time", False: "approval waived"}


def row_record(kept: KeptRow, *, whole: bool = False) -> dict[str, Any]:
    """Return a row as JSON content.

    :param whole: with what it is configured with
    """
    row = kept.row
    record: dict[str, Any] = {
        "id": row.id,
        "name": row.name,
        "label": row.label,
        "active": row.active,
        "version": row.version,
        "owner": row.user_id,
        "role": kept.role,
        "accepted": kept.accepted,
        "has_secrets": kept.has_secrets,
        "created_at": kept.created_at,
        "updated_at": kept.updated_at,
    }
    if whole:
        record |= {"config": row.config, "actions": msgspec.to_builtins(row.actions)}
        record |= {"actions_metadata": row.actions_metadata}
    return record


def action_names(row: ToolRow) -> list[str]:
    """Return the names of a row's actions, as far as they are stored with it."""
    configured = row.config.get("actions")
    if isinstance(configured, dict):
        return list(map(str, configured))
    return [str(entry.get("name")) for entry in row.actions_metadata or ()]


def built_in_record(built_in: BuiltIn) -> dict[str, Any]:
    """Return a built-in tool as JSON content."""
    said = msgspec.to_builtins(built_in)
    role = "default" if said.pop("default") else "built-in"
    return {**said, "active": built_in.standing != "off", "role": role}


def built_in_line(built_in: BuiltIn) -> Text:
    """Return how a built-in tool stands as one line."""
    how = {"on": "on", "off": "off", "ask": "on, and asks first"}[built_in.standing]
    said = "; the deployment says so" if built_in.set_by == "deployment" else ""
    away = "" if built_in.unavailable is None else f"; it cannot work at present: {one_line(built_in.unavailable)}"
    return Text.assemble((one_line(built_in.name), "bold"), f" is {how}{said}{away}")


def share_record(share: Share) -> dict[str, Any]:
    """Return a share as JSON content."""
    return {"kind": share.grantee.kind, "name": share.grantee.name, "role": share.role}


def rows_table(rows: Iterable[KeptRow], built_ins: Iterable[BuiltIn]) -> Table:
    """Return rows, then built-in tools, as a table."""
    table = table_of("row", "tool", "label", "", "yours", "secrets", "changed")
    for kept in rows:
        row = kept.row
        table.add_row(
            Text(f"{row.id}@{row.version}"),
            Text(one_line(row.name), style="bold"),
            Text(one_line(row.label)),
            "" if row.active else Text("off", style="yellow"),
            Text("owner" if kept.role == "owner" else f"{kept.role}, of {_owner(row)}{_waits(kept)}"),
            "stored" if kept.has_secrets else "",
            Text(_moment(kept.updated_at), style="dim"),
        )
    for each in built_ins:
        kind, away = "default" if each.default else "built-in", one_line(each.unavailable or "")
        table.add_row(
            Text(kind, style="dim"), Text(one_line(each.name), style="bold"), Text(away), _standing(each), "", "", ""
        )
    return table


def _standing(built_in: BuiltIn) -> Text:
    if built_in.standing == "on" and built_in.set_by is None:
        return Text("cannot work" if built_in.unavailable else "", style="yellow")
    return Text(f"{built_in.standing}, by {built_in.set_by}", style="yellow")


def row_line(row: ToolRow, verb: str) -> Text:
    """Return what was done to a row as one line."""
    label = f"  {one_line(row.label)}" if row.label else ""
    return Text.assemble(f"{verb} ", (f"{row.id}@{row.version}", "bold"), f"  {one_line(row.name)}{label}")


def row_lines(kept: KeptRow, actions: Sequence[str], shares: Sequence[Share]) -> Iterator[Text]:
    """Return a row as lines."""
    row = kept.row
    yield row_line(row, kept.role if kept.role == "owner" else f"{kept.role}, of {_owner(row)}{_waits(kept)}:")
    yield Text(f"  {'active' if row.active else 'off'}, changed {_moment(kept.updated_at)}")
    for key, value in row.config.items():
        if key != "actions":
            yield Text(f"  {one_line(key)} = {json_text(value)}")
    if kept.has_secrets:
        yield Text("  secrets are stored")
    if actions:
        more = f", and {len(actions) - _SHOWN} more" if len(actions) > _SHOWN else ""
        yield Text(f"  actions: {one_line(', '.join(actions[:_SHOWN]))}{more}")
    for said in row.actions or ():
        content = msgspec.to_builtins(said).items()
        about = {key: value for key, value in content if key not in _IN_WORDS and value}
        words = f"{'' if said.active else 'off, '}{_APPROVAL[said.require_approval]}"
        yield Text(f"  {one_line(said.name)}: {words}{f' {json_text(about)}' if about else ''}")
    for share in shares:
        yield Text(f"  shared to {one_line(str(share.grantee))} as {share.role}")


def _owner(row: ToolRow) -> str:
    return one_line(row.user_id or "-")


def _waits(kept: KeptRow) -> str:
    return "" if kept.accepted else ", not accepted"


def version_lines(versions: Iterable[RowVersion]) -> Iterator[Text]:
    """Return versions of a row as lines."""
    for version in versions:
        by = one_line(version.changed_by or "-")
        said = "removed" if version.definition is None else json_text(_brief(version))
        yield Text(f"{version.version:>4} {_moment(version.changed_at)} by {by}  {said}")


def _brief(version: RowVersion) -> dict[str, Any]:
    content: dict[str, Any] = msgspec.to_builtins(version.definition)
    content["config"] = {key: value for key, value in content["config"].items() if key != "actions"}
    del content["actions_metadata"]
    return {key: value for key, value in content.items() if value not in ("", None, {}, True)}


def _moment(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
