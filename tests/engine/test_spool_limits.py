"""Where the spool has its end, and what is no outage at all: then nothing is said to be kept that is not."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from engine import Engine, Settings
from engine.outage import is_outage
from engine.settings import Limits
from engine.spool_place import spool_place
from events import Conflict, Executed, Failed, LogUnavailable, Proposed, Refused, VersionConflict
from tests.engine.losing import LosableJournal, drained, in_log, losable_sqlite, on_losable, spool_files, spooling
from tests.engine.staging import CONTEXT, call, events_of, outcome_of, proved, row_of, staged_engine, tool_of
from tests.engine.test_draining import SHORT, watcher

__all__ = ()

pytestmark = pytest.mark.anyio


def unusable(folder: Path) -> Settings:
    """Return settings with a spool that nothing can be written to, for there is a file in its place."""
    (folder / "spool").write_text("a file")
    return spooling(folder)


async def test_nothing_begins_that_cannot_be_spooled(losable: LosableJournal, tmp_path: Path) -> None:
    watched, tool = watcher()
    async with on_losable(losable, unusable(tmp_path), tool) as engine:
        losable.go_away()
        with pytest.raises(LogUnavailable, match="spool"):
            await anext(engine.execute(call({"name": "n"}), CONTEXT))
        assert watched.called == []
        losable.come_back()
        assert isinstance(await outcome_of(engine, call({"name": "n"})), Executed)
        await proved(engine)


async def test_an_outcome_that_can_be_kept_nowhere_is_not_yielded(losable: LosableJournal, tmp_path: Path) -> None:
    ran: list[int] = []

    async def runs() -> str:
        ran.append(1)
        losable.go_away()
        return "done"

    async with on_losable(losable, unusable(tmp_path), tool_of(runs)) as engine:
        stream = engine.execute(call(), CONTEXT)
        assert isinstance(await anext(stream), Proposed)
        with pytest.raises(LogUnavailable, match="spool") as lost:
            await anext(stream)
        assert "locked" in str(lost.value) or "connection" in str(lost.value), "both reasons are told"
        losable.come_back()
        told = await outcome_of(engine, call())
        assert isinstance(told, Failed)
        assert told.kind == "orphaned"
        assert ran == [1]
        await proved(engine)


async def many(engine: Engine, count: int) -> None:
    for number in range(count):
        await events_of(engine, call({"name": f"n{number}"}, call_id=f"c{number}"))


async def test_a_full_spool_takes_what_ends_and_begins_nothing(losable: LosableJournal, tmp_path: Path) -> None:
    watched, tool = watcher()
    settings = spooling(tmp_path, limits=Limits(spool=4000))
    async with on_losable(losable, settings, tool) as engine:
        losable.go_away()
        stream = engine.execute(call({"name": "open"}, call_id="open"), CONTEXT)
        await anext(stream)
        with pytest.raises(LogUnavailable, match="full"):
            await many(engine, 50)
        assert 1 < len(watched.called) < 10
        assert isinstance(await anext(stream), Executed)
        await stream.aclose()
        losable.come_back()
        await drained(engine)
        assert len(await in_log(engine)) == 2 * len(watched.called)
        await proved(engine)


async def test_a_bug_is_no_outage(sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor for those whose append was in one batch with the one that it hit."""
    watched, tool = watcher()
    settings = spooling(tmp_path, on_journal_failure="run")
    async with staged_engine(sqlite_url, tool, settings=settings) as engine:

        def broken(self: object, units: Sequence[Any]) -> Any:
            raise TypeError("a bug of ours")

        errors: list[Exception] = []

        async def propose(number: int) -> None:
            try:
                await events_of(engine, call({"name": "n"}, call_id=f"c{number}"))
            except (TypeError, LogUnavailable) as error:
                errors.append(error)

        with monkeypatch.context() as patch:
            patch.setattr("events.sqlite_writer.SqliteWriter.commit", broken)
            async with anyio.create_task_group() as tasks:
                for number in range(8):
                    tasks.start_soon(propose, number)
        assert len(errors) == 8
        assert watched.called == []
        assert spool_files(settings) == []


@pytest.mark.parametrize(
    ("error", "outage"),
    [
        (LogUnavailable("away"), True),
        (VersionConflict("k", 0, 1), False),
        (Conflict("other"), False),
        (Refused("no"), False),
        (OSError("gone"), False),
    ],
)
def test_what_counts_as_an_outage(error: Exception, outage: bool) -> None:
    assert is_outage(error) is outage


@pytest.mark.parametrize(
    ("cause", "outage"),
    [
        (sqlite3.OperationalError("database or disk is full"), True),
        (ConnectionRefusedError(), True),
        (TimeoutError(), True),
        (sqlite3.ProgrammingError("wrong number of bindings"), False),
        (TypeError("a bug"), False),
        (AssertionError(), False),
        (KeyError("a bug"), False),
    ],
)
def test_its_cause_decides(cause: Exception, outage: bool) -> None:
    between, error = LogUnavailable("away"), LogUnavailable("away")
    between.__cause__, error.__cause__ = cause, between
    assert is_outage(error) is outage


def test_one_folder_a_database_and_no_password_in_its_name(tmp_path: Path) -> None:
    settings = Settings(spool=tmp_path)
    same = [
        "postgresql://me:canary-4f1d@db.example/journal",
        "postgresql://me:other@db.example:5432/journal?application_name=x",
        "postgresql+asyncpg://you@DB.example:5432/journal",
        "postgres://db.example/journal",
    ]
    (folder,) = {spool_place(url, settings) for url in same}
    assert folder is not None
    assert folder.parent == tmp_path
    assert folder.name.startswith("journal-")
    others = [
        "postgresql://db.example/journal2",
        "postgresql://db.example:5433/journal",
        "postgresql:///journal?host=/run/postgresql",
        f"sqlite:///{tmp_path}/journal.db",
        f"sqlite:///{tmp_path}/x/journal.db",
    ]
    assert len({folder, *(spool_place(url, settings) for url in others)}) == 6
    assert spool_place("null://", settings) is None
    assert spool_place("sqlite://", settings) is None


def test_by_default_it_is_in_the_users_folder_for_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    folder = spool_place("sqlite:///journal.db", Settings())
    assert folder is not None
    assert folder.is_relative_to(tmp_path / "calljournal" / "spool")
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = spool_place("sqlite:///journal.db", Settings())
    assert folder is not None
    assert folder.is_relative_to(tmp_path / "home" / ".local" / "state")


async def test_what_is_damaged_is_kept_for_people(
    sqlite_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _, tool = watcher()
    settings = spooling(tmp_path, limits=SHORT)
    with losable_sqlite(sqlite_url) as journal:
        async with on_losable(journal, settings, tool) as engine:
            journal.go_away()
            for number in range(3):
                await events_of(engine, call({"name": "n"}, call_id=f"c{number}"))
        journal.come_back()
        (file,) = spool_files(settings)
        content = bytearray(file.read_bytes())
        content[content.index(b"m:c1")] ^= 0xFF
        file.write_bytes(content)
        async with on_losable(journal, replace(settings, limits=Limits()), tool) as engine:
            assert {record.key for record in await in_log(engine)} == {"m:c0", "m:c2"}
            assert [path.suffix for path in spool_files(settings)] == [".damaged"]
            assert (await row_of(engine, "m:c2")).status == "executed"
            await proved(engine)
    assert "could not be read" in caplog.text
