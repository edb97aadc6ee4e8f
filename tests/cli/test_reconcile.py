"""``calljournal reconcile``: its report as lines, whatever the report holds."""

from __future__ import annotations

import msgspec

from engine.cli.reconcile import report_lines
from tests.cli.command import Called, check_refused

__all__ = ()


class Found(msgspec.Struct, frozen=True):
    """One call, as a report may name it."""

    key: str

    def __str__(self) -> str:
        return f"call {self.key}\x1b[2J"


class Report(msgspec.Struct, frozen=True):
    """A report, of the kinds of fields that one may have."""

    dry_run: bool
    orphaned: tuple[Found, ...]
    never_confirmed: int
    by_kind: dict[str, int]


def test_a_report_is_lines_of_visible_text() -> None:
    report = Report(True, (Found("m:c1"), Found("m:c2")), 3, {"expired": 1})
    assert report_lines(report) == [
        "orphaned: call m:c1\\x1b[2J",
        "orphaned: call m:c2\\x1b[2J",
        'dry run: True, orphaned: 2, never confirmed: 3, by kind: {"expired":1}',
    ]


def test_there_must_be_a_journal(called: Called) -> None:
    check_refused(called("reconcile", "--dry-run"), 3, "there is no journal")
