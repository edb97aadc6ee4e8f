"""What is said in the log of a call that may be invented, and when nothing is."""

from __future__ import annotations

import pytest

from engine import CallContext
from tests.engine.forecasts import row, storing
from tests.engine.staging import call, outcome_of

__all__ = ()

pytestmark = pytest.mark.anyio


async def test_a_name_that_a_newer_row_explains_is_not_warned_of(
    sqlite_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The rows are read anew before a call is refused, so only what is unknown then may be invented."""
    async with storing(sqlite_url) as engine:
        await engine.rows.add(row("t1", "todo_list"), user_id="u")
        for name, warned in (("todo_list", []), ("todo_lost", ['its tool id "lost" is not numeric'])):
            caplog.clear()
            await outcome_of(engine, call({}, name=name, call_id=name), CallContext(user_id="u", message_id="m"))
            said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
            assert len(said) == len(warned)
            assert all(words in text for words, text in zip(warned, said, strict=True))
