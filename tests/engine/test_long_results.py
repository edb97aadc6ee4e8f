"""A call with a long result: the loop goes on meanwhile, and the log has the whole of it (TRUNCATE-03)."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import Any

import anyio
import msgspec
import pytest

from engine.results import finish, looked_through
from events import Executed
from tests.engine.staging import call, outcome_of, staged, stream_of

pytestmark = pytest.mark.anyio

ROWS = {"rows": [{"id": number, "title": "é" * 80} for number in range(40_000)]}
PAIRS = {"rows": [(number, "t" * 80) for number in range(40_000)]}
TEXT = 'é"\n' * 4_000_000
LARGEST = "é" * 18_000_000


async def give(result: Any) -> Any:
    return result


@pytest.mark.parametrize("result", [ROWS, TEXT, LARGEST], ids=["rows", "text", "largest"])
async def test_case_truncate_03_the_loop_goes_on_while_a_long_result_is_worked_on(result: Any) -> None:
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            await anyio.sleep(0.001)
            beats += 1

    # A journal that stores nothing waits for nothing: whatever turns others have, the engine leaves them.
    async with staged("null://", partial(give, result)) as engine, anyio.create_task_group() as tasks:
        tasks.start_soon(beat)
        event = await outcome_of(engine, call({}))
        tasks.cancel_scope.cancel()
    assert isinstance(event, Executed)
    assert beats > 3


@pytest.mark.parametrize("result", [ROWS, PAIRS, TEXT, LARGEST], ids=["rows", "pairs", "text", "largest"])
async def test_case_truncate_03_a_long_result_is_kept_whole(sqlite_url: str, result: Any) -> None:
    async with staged(sqlite_url, partial(give, result)) as engine:
        event = await outcome_of(engine, call({}))
        stored = (await stream_of(engine))[-1]
        assert isinstance(stored, Executed)
        whole = await engine.log.whole(stored, user_id="u")
    text = result if isinstance(result, str) else finish(result).text
    assert stored.result_digest == hashlib.sha256(text.encode()).hexdigest()
    assert stored.result_length == len(text)
    assert whole.result == (text if isinstance(result, str) else msgspec.json.decode(text))
    assert isinstance(event, Executed)
    assert event.result_digest == stored.result_digest


async def test_what_is_looked_through_in_a_thread_has_its_value_at_hand() -> None:
    finished = finish(PAIRS)
    assert finished.is_long
    assert (await looked_through(finished)).value is finished.value
    assert finished.value["rows"][1] == [1, "t" * 80]


@pytest.mark.parametrize("mark", ["\0", "\x7f"])
@pytest.mark.parametrize("filling", ["x", "é", "\N{GRINNING FACE}"])
def test_behaviour_125_a_control_character_is_found_wherever_it_stands_in_a_long_text(mark: str, filling: str) -> None:
    for place in (0, 24 * 1024 - 1, 24 * 1024, 99_999):
        text = filling * place + mark + filling * (100_000 - place)
        finished = finish(text)
        assert finished.value == filling * 100_000
        assert msgspec.json.decode(finished.encoded) == finished.value


def test_halves_of_a_pair_that_only_a_control_character_parts_are_one_character() -> None:
    assert finish("é\ud83d\x00\ude00").value == "é\N{GRINNING FACE}"
