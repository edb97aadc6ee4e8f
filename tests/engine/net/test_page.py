"""The page about the way out is complete."""

from __future__ import annotations

from typing import get_args

import engine.net
from engine.net import NetError, NetPolicy, UnsafeReason
from tests.pages import page, table

__all__ = ()


def test_the_page_has_every_reason_every_error_and_every_limit() -> None:
    text = page("docs/net.md")
    assert [row[0] for row in table(text, "What may be reached")] == list(get_args(UnsafeReason))
    errors = {name: getattr(engine.net, name) for name in engine.net.__all__}
    codes = {name: kind.code for name, kind in errors.items() if isinstance(kind, type) and issubclass(kind, NetError)}
    del codes["NetError"]
    assert {row[0]: row[1].strip("`") for row in table(text, "Errors")} == codes
    policy = NetPolicy()
    limits = {"largest": f"{policy.largest >> 20} MiB", "deadline": f"{policy.deadline:g} s"}
    limits |= {"connect": f"{policy.connect:g} s", "redirects": str(policy.redirects)}
    limits |= {"connections": str(policy.connections)}
    assert {row[0]: row[1] for row in table(text, "How much, how long")} == limits
