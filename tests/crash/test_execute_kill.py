"""``execute`` killed mid-load: every event it yielded is in the log once, and what it left is found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path

import pytest

from engine import CallContext, Engine, ToolCall, ToolRow
from engine.lease import lease_alive
from events import Executed, Failed, Proposed
from events.types import StreamEvent
from projections import verify
from tests.crash.child import Child
from tests.crash.executor import Bell
from tests.engine.stuck_calls import end_lease
from tests.logs import recorded_events

__all__ = ()

pytestmark = pytest.mark.anyio


class Executor(Child):
    """A process that runs calls."""

    def __init__(self, url: str, backend: str, name: str, effects: Path) -> None:
        super().__init__("tests.crash.executor", url, backend, name, environment={"EFFECTS": str(effects)})
        (self.worker,) = self.get_ready()

    @property
    def yielded(self) -> list[tuple[str, str, str]]:
        """What it was given: (id, key, kind)."""
        return [(identity, key, kind) for identity, key, kind in map(str.split, self.lines)]


@contextmanager
def executor(url: str, backend: str, name: str, effects: Path) -> Iterator[Executor]:
    process = Executor(url, backend, name, effects)
    try:
        yield process
    finally:
        process.close()


async def repeated(engine: Engine, left: Proposed) -> list[StreamEvent]:
    """Make a call again that a dead worker left."""
    wanted = ToolCall(id=left.call_id, name=left.llm_name, arguments=left.arguments)
    context = CallContext(user_id=left.user_id, message_id=left.message_id)
    async with aclosing(engine.execute(wanted, context)) as stream:
        return [event async for event in stream]


@pytest.mark.parametrize("after", [1, 200], ids=lambda lines: f"after {lines}")
async def test_killed_mid_load_every_yielded_event_is_there_once(
    database_url: str, anyio_backend: str, after: int, tmp_path: Path
) -> None:
    effects = tmp_path / "effects"
    effects.touch()
    with executor(database_url, anyio_backend, "p", effects) as process:
        process.begin()
        process.listen(after)
        process.kill()
    async with Engine.open(database_url, rows=[ToolRow(id="t1", name="bell")], tools=[Bell]) as engine:
        events = await recorded_events(engine.log)
        counted = Counter(entry.event.id for entry in events)
        assert [entry for entry in process.yielded if counted[entry[0]] != 1] == []
        assert set(counted.values()) <= {1}
        assert (await verify(engine.log)).problems == ()

        # Each run was proposed first; none ran twice; what is executed has run.
        ran = Counter(effects.read_text().split())
        assert set(ran.values()) <= {1}
        proposed = {entry.event.message_id: entry.event for entry in events if isinstance(entry.event, Proposed)}
        assert set(ran) <= set(proposed)
        executed = {entry.event.message_id for entry in events if isinstance(entry.event, Executed)}
        assert executed <= set(ran)

        # The killed worker's lease ends by itself; then what it left is closed by whoever makes the call again.
        left = [entry for message, entry in proposed.items() if message not in executed]
        assert await lease_alive(engine.log.store, process.worker)
        await end_lease(engine, process.worker)
        for entry in left:
            opening, failed = await repeated(engine, entry)
            assert opening == entry
            assert isinstance(failed, Failed)
            assert failed.kind == "orphaned"
        assert Counter(effects.read_text().split()) == ran
        assert (await verify(engine.log)).problems == ()


@pytest.mark.soak
@pytest.mark.parametrize("round_", range(8))
async def test_killed_again_and_again(database_url: str, anyio_backend: str, round_: int, tmp_path: Path) -> None:
    effects = tmp_path / "effects"
    effects.touch()
    yielded: list[tuple[str, str, str]] = []
    for turn in range(4):
        with executor(database_url, anyio_backend, f"p{turn}", effects) as process:
            process.begin()
            process.listen(1 + 61 * turn * (round_ + 1))
            process.kill()
            yielded += process.yielded
    async with Engine.open(database_url) as engine:
        counted = Counter(entry.event.id for entry in await recorded_events(engine.log))
        assert [entry for entry in yielded if counted[entry[0]] != 1] == []
        assert set(Counter(effects.read_text().split()).values()) <= {1}
        assert (await verify(engine.log)).problems == ()
