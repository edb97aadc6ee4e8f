"""Limits that no machine or clock could keep are refused where they are written, not where a call meets them."""

from __future__ import annotations

import math
from typing import Any

import pytest

from engine import Limits
from events import Refused

__all__ = ()


@pytest.mark.parametrize(
    "wrong",
    [
        {"decide_within": math.inf},
        {"decide_within": math.nan},
        {"answer_within": 1e18},
        {"report_after": math.nan},
        {"lease": -1.0},
        {"ask": -0.1},
        {"queue": 0},
        {"sync_threads": 0},
        {"parallel": 0},
        {"preview": -1},
        {"spool": -1},
    ],
)
def test_what_cannot_be_kept_is_refused(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(Refused, match=rf"Limits\.{name} cannot be"):
        Limits(**wrong)


def test_usual_ones_are_taken() -> None:
    assert Limits(decide_within=None, answer_within=0.0, spool=2**40, cleanup=0).parallel == 8
