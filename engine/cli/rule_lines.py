"""Rules as people read them on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

import msgspec
from rich.table import Table
from rich.text import Text

from engine.cli.plain import one_line
from engine.cli.rendering import table_of
from engine.rule import Rule, RuleVersion

__all__ = ("rule_line", "rules_table", "version_line")

_COLOURS = {"allow": "green", "ask": "yellow", "deny": "red"}


def rules_table(rules: Iterable[Rule]) -> Table:
    """Return rules as a table, in their order."""
    table = table_of("place", "verdict", "rule", "calls", "until")
    for rule in rules:
        table.add_row(
            "granted" if rule.decision is not None else str(rule.ordinal),
            Text(rule.verdict, style=_COLOURS[rule.verdict]),
            Text(f"{rule.id}@{rule.version}"),
            Text(one_line(_calls(rule) + (f"  ({rule.message})" if rule.message else ""))),
            _moment(rule.expires_at),
        )
    return table


def rule_line(rule: Rule, verb: str) -> Text:
    """Return what was done to a rule as one line."""
    return Text.assemble(
        f"{verb} ",
        (f"{rule.id}@{rule.version}", "bold"),
        "  ",
        (rule.verdict, _COLOURS[rule.verdict]),
        f"  {_said(rule)}",
    )


def version_line(version: RuleVersion) -> Text:
    """Return one version of a rule as a line."""
    rule = version.rule
    line = rule_line(rule, f"{_moment(rule.created_at)} by {one_line(rule.created_by or '-')}")
    if version.retired_at is not None:
        line.append(f"  until {_moment(version.retired_at)} by {one_line(version.retired_by or '-')}", style="dim")
    return line


def _said(rule: Rule) -> str:
    until = "" if rule.expires_at is None else f", until {_moment(rule.expires_at)}"
    return one_line(f"{_calls(rule)}{until}")


def _calls(rule: Rule) -> str:
    return "; ".join(_conditions(rule)) or "every call"


def _conditions(rule: Rule) -> Iterator[str]:
    for name, value in (
        ("tool", rule.tool),
        ("row", rule.tool_id),
        ("action", rule.action),
        ("effect", rule.effect),
        ("user", rule.tenant),
        ("when", rule.predicate),
    ):
        if value is not None:
            yield f"{name} {value}"
    if rule.conversation_id is None:
        yield "no conversation"
    elif rule.conversation_id is not msgspec.UNSET:
        yield f"conversation {rule.conversation_id}"
    if rule.headless is not None:
        yield "headless" if rule.headless else "watched"


def _moment(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
