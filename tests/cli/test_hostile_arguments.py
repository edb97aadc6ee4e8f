"""Bytes that are no text, and numbers beyond all measure: one line, exit code 2."""

from __future__ import annotations

import pytest

from tests.cli.command import Called, check_refused

__all__ = ()

# How an argument's byte that is no UTF-8 reaches a program.
BYTE = "m:t0\udcff"


@pytest.mark.parametrize(
    "arguments",
    [
        ("approve", BYTE),
        ("deny", BYTE),
        ("resume", BYTE),
        ("approve", "m:t0", "--edit", BYTE),
        ("approve", "m:t0", "--by", BYTE),
        ("rules", "show", BYTE),
        ("rules", "revoke", BYTE),
        ("rules", "add", "deny", "--message", BYTE),
        ("events", "--key", BYTE),
        ("events", "--after", "9" * 5000),
        ("approvals", "--user", BYTE),
    ],
)
def test_one_line_for_each(called: Called, arguments: tuple[str, ...]) -> None:
    assert called("migrate").code == 0
    check_refused(called(*arguments), 2)
