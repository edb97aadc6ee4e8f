"""The folder of a journal's spool, as several workers of one machine have it at once."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec.structs import replace

from engine.outcomes import failed
from engine.parked import PARKED, park, parked_calls
from engine.spool_folder import SpoolFolder
from events import Proposed
from events.codec import Codec
from events.keys import new_id

__all__ = ()


def proposed(number: int) -> Proposed:
    return Proposed(
        id=new_id(),
        key=f"m:c{number}",
        call_id=f"c{number}",
        message_id="m",
        user_id="u",
        tool_id="t1",
        tool_name="counter",
        action_name="bump",
        llm_name="bump",
        arguments={},
        digest="d",
        fingerprint="f",
        effect="read",
        idempotent=False,
        headless=False,
        worker="w",
    )


def open_files() -> int:
    return len(os.listdir("/dev/fd"))


def test_what_was_seen_of_others_is_let_go(tmp_path: Path) -> None:
    one, other = [SpoolFolder(tmp_path / "spool", worker, 1 << 20, Codec()) for worker in ("one", "other")]
    before = open_files()
    for number in range(5):
        call = proposed(number)
        assert one.begin(call, None) is None
        other.look()
        assert other.knows_any
        one.written(call.id, None)
        other.look()
        assert not other.knows_any
    assert open_files() == before


def test_what_others_have_written_since_is_seen(tmp_path: Path) -> None:
    one, other = [SpoolFolder(tmp_path / "spool", worker, 1 << 20, Codec()) for worker in ("one", "other")]
    first, second = proposed(1), proposed(2)
    one.begin(first, None)
    other.look()
    one.begin(second, None)
    one.written(first.id, None)
    assert other.find(first) is None
    known = other.find(second)
    assert known is not None
    assert (known.proposed.id, known.holder) == (second.id, "other")
    assert other.holds("uu", "m:c2", "")
    one.written(second.id, None)
    assert not other.holds("uu", "", "m")


def test_a_repetition_that_was_cancelled_does_not_hide_the_call(tmp_path: Path) -> None:
    spool = SpoolFolder(tmp_path / "spool", "one", 1 << 20, Codec())
    call = proposed(1)
    spool.begin(call, None)
    repetition = replace(call, id=new_id())
    cancelled = spool.end(repetition, failed(repetition, "cancelled", "left"), 1, False)
    known = spool.find(call)
    assert known is not None
    assert known.proposed.id == call.id
    spool.written(repetition.id, cancelled.id)
    assert spool.find(call) == known


def test_what_was_cut_off_takes_no_parked_call_along(tmp_path: Path) -> None:
    first, second = proposed(1), proposed(2)
    park(tmp_path, first, None, "why")
    with (tmp_path / PARKED).open("ab") as file:
        file.write(b'{"parked_at":"2026-0')
    park(tmp_path, second, None, "why")
    assert [call.proposed.id for call in parked_calls(tmp_path)] == [first.id, second.id]
