"""What others have put where a spool is, and users without a home: nothing of it is trusted, lost, or in the way."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from engine import Settings
from engine.spool_file import FolderLock, SpoolFile
from engine.spool_place import spool_place
from events import Executed, LogUnavailable, Proposed
from tests.engine.losing import LosableJournal, drained, in_log, on_losable, reader, spooling
from tests.engine.staging import CONTEXT, call, events_of, outcome_of, proved, stream_of

__all__ = ()

NEWER = b"calljournal spool 2\n" + b"whatever that release keeps" * 10


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(path.parent)
        try:
            server.bind(path.name)
        finally:
            os.chdir(here)


STRANGE: dict[str, Callable[[Path], object]] = {
    "newer": lambda path: path.write_bytes(NEWER),
    "text": lambda path: path.write_text("a diary"),
    "folder": Path.mkdir,
    "pipe": os.mkfifo,
    "socket": a_socket,
    "link": lambda path: path.symlink_to(path.parent),
    "dangling": lambda path: path.symlink_to(path.parent / "nothing"),
}


async def looked() -> str:
    return "looked"


@pytest.mark.anyio
@pytest.mark.parametrize("kind", STRANGE)
async def test_what_is_no_spool_is_left_alone_and_keeps_nothing_out(
    losable: LosableJournal, tmp_path: Path, kind: str
) -> None:
    settings = spooling(tmp_path)
    folder = spool_place(losable.url, settings)
    assert folder is not None
    folder.mkdir(parents=True, mode=0o700)
    strange = folder / "worker-x.1.spool"
    STRANGE[kind](strange)
    before = strange.lstat()
    async with on_losable(losable, settings, reader(looked)) as engine:
        losable.go_away()
        assert isinstance(await outcome_of(engine, call()), Executed)
        losable.come_back()
        await drained(engine)
        await proved(engine)
    after = strange.lstat()
    assert (after.st_ino, after.st_mode, after.st_size) == (before.st_ino, before.st_mode, before.st_size)


@pytest.mark.anyio
async def test_a_folder_that_everyone_may_write_to_is_not_used(losable: LosableJournal, tmp_path: Path) -> None:
    settings = spooling(tmp_path)
    folder = spool_place(losable.url, settings)
    assert folder is not None
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    async with on_losable(losable, settings, reader(looked)) as engine:
        losable.go_away()
        with pytest.raises(LogUnavailable, match="everyone may write to it; remove it, or chmod 700"):
            await events_of(engine, call())
        folder.chmod(0o770)
        assert isinstance(await outcome_of(engine, call()), Executed)
        losable.come_back()
        await drained(engine)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_what_another_user_owns_is_not_trusted(tmp_path: Path) -> None:
    path = tmp_path / "a.spool"
    SpoolFile.create(path).close()
    os.chown(path, 54321, 54321)
    assert SpoolFile.adopt(path) is None
    assert SpoolFile.view(path) is None
    os.chown(tmp_path, 54321, 54321)
    with pytest.raises(PermissionError, match="another user's"), FolderLock(tmp_path):
        pass


@pytest.mark.anyio
async def test_what_is_spooled_after_somebody_emptied_the_folder_is_there_for_the_next(
    losable: LosableJournal, tmp_path: Path
) -> None:
    settings = spooling(tmp_path)
    folder = spool_place(losable.url, settings)
    assert folder is not None
    async with on_losable(losable, settings, reader(looked)) as engine:
        losable.go_away()
        assert isinstance(await outcome_of(engine, call(call_id="c1")), Executed)
        shutil.rmtree(folder)
        assert isinstance(await outcome_of(engine, call(call_id="c2")), Executed)
        (file,) = folder.glob("*.spool")
        assert b"m:c2" in file.read_bytes()
        losable.come_back()
        await drained(engine)
        executed = [record.event.key for record in await in_log(engine) if isinstance(record.event, Executed)]
        assert executed == ["m:c1", "m:c2"]
        await proved(engine)


@pytest.mark.anyio
async def test_what_runs_while_somebody_empties_the_folder_is_not_given_up(
    losable: LosableJournal, tmp_path: Path
) -> None:
    settings, done = spooling(tmp_path), anyio.Event()
    folder = spool_place(losable.url, settings)
    assert folder is not None

    async def waits() -> str:
        await done.wait()
        return "waited"

    tools = (reader(looked, name="looker", action="look"), reader(waits, name="waiter", action="wait"))
    async with (
        on_losable(losable, settings, *tools) as engine,
        aclosing(engine.execute(call(name="wait"), CONTEXT)) as s,
    ):
        losable.go_away()
        await anext(s)
        shutil.rmtree(folder)
        assert isinstance(await outcome_of(engine, call(name="look", call_id="c2")), Executed)
        losable.come_back()
        with anyio.fail_after(30):
            while not any(record.event.key == "m:c2" for record in await in_log(engine)):
                await anyio.lowlevel.checkpoint()
        done.set()
        assert isinstance(await anext(s), Executed)
        await drained(engine)
        assert [type(event) for event in await stream_of(engine)] == [Proposed, Executed]
        await proved(engine)


@pytest.mark.anyio
async def test_one_damaged_record_holds_up_none_behind_it(losable: LosableJournal, tmp_path: Path) -> None:
    settings = spooling(tmp_path)
    folder = spool_place(losable.url, settings)
    assert folder is not None
    async with on_losable(losable, settings, reader(looked)) as engine:
        losable.go_away()
        for name in ("c1", "c2", "c3"):
            assert isinstance(await outcome_of(engine, call(call_id=name)), Executed)
        (file,) = folder.glob("*.spool")
        with file.open("r+b") as raw:
            raw.seek(60)
            raw.write(b"\0")
        losable.come_back()
        with anyio.fail_after(30):
            while engine.statistics().spool.depth > 1:
                await anyio.lowlevel.checkpoint()
        written = [record.event.key for record in await in_log(engine) if isinstance(record.event, Executed)]
        assert written == ["m:c2", "m:c3"]
        with pytest.raises(LogUnavailable, match="still in the spool"):
            await engine.attempt("m:c1", user_id="u")
        await proved(engine)
    async with on_losable(losable, settings, reader(looked)) as engine:
        await drained(engine)
        assert [path.suffix for path in folder.iterdir() if path.name != "lock"] == [".damaged"]


def test_a_long_damaged_record_hides_none_behind_it(tmp_path: Path) -> None:
    path = tmp_path / "a.spool"
    file = SpoolFile.create(path)
    first = file.append(b"x" * 3_000_000)
    file.append(b"second")
    file.close()
    with path.open("r+b") as raw:
        raw.seek(first + 100)
        raw.write(b"y")
    adopted = SpoolFile.adopt(path)
    assert adopted is not None
    assert [record.content for record in adopted.left()] == [b"second"]
    assert adopted.damaged == 1
    adopted.close()


def test_a_user_without_a_home_has_no_spool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("os.getuid", lambda: 54321)
    url = f"sqlite:///{tmp_path}/journal.db"
    assert spool_place(url, Settings()) is None
    assert "set XDG_STATE_HOME" in caplog.text
    assert spool_place(url, Settings(spool=tmp_path)) is not None
