"""A spool's file on its own: what a crash, a full disk and a bad block do to it, and who may hold it."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from engine.spool_file import FolderLock, SpoolFile

__all__ = ()

RECORDS = [b"first", b"second" * 50, b"third"]


def written(path: Path, records: list[bytes]) -> list[int]:
    """Make a file of records and return where each ends."""
    file, ends = SpoolFile.create(path), []
    for record in records:
        file.append(record)
        ends.append(file.end)
    file.close()
    return ends


def left(path: Path) -> tuple[list[bytes], int]:
    """Return what the next worker finds in a file, and how much of it is damaged."""
    file = SpoolFile.adopt(path)
    assert file is not None
    records = list(file.left())
    assert [file.read(record.offset) for record in records] == [record.content for record in records]
    file.close()
    return [record.content for record in records], file.damaged


def test_records_come_back_in_order(tmp_path: Path) -> None:
    path = tmp_path / "a.spool"
    written(path, RECORDS)
    assert left(path) == (RECORDS, 0)
    assert path.stat().st_mode & 0o777 == 0o600


def test_cut_anywhere_the_whole_records_remain(tmp_path: Path) -> None:
    """A process that dies while it writes, at any byte."""
    path, cut = tmp_path / "a.spool", tmp_path / "cut.spool"
    ends = written(path, RECORDS)
    content = path.read_bytes()
    for size in range(len(content)):
        cut.write_bytes(content[:size])
        found, damaged = left(cut)
        assert found == RECORDS[: sum(end <= size for end in ends)]
        assert damaged == 0
        # What was torn is out of the way of whatever comes next.
        file = SpoolFile.adopt(cut)
        assert file is not None
        list(file.left())
        file.append(b"next")
        file.close()
        assert left(cut)[0] == [*found, b"next"]


def test_zeros_at_the_end_are_no_records(tmp_path: Path) -> None:
    """A power cut may leave a file longer than what was written of it."""
    path = tmp_path / "a.spool"
    written(path, RECORDS)
    with path.open("ab") as file:
        file.write(bytes(4096))
    assert left(path) == (RECORDS, 0)


@pytest.mark.parametrize("place", ["length", "checksum", "content"])
def test_a_bad_block_takes_no_others_along(tmp_path: Path, place: str) -> None:
    path = tmp_path / "a.spool"
    first, _, _ = written(path, RECORDS)
    content = bytearray(path.read_bytes())
    content[first + {"length": 1, "checksum": 5, "content": 20}[place]] ^= 0xFF
    path.write_bytes(content)
    assert left(path) == ([RECORDS[0], RECORDS[2]], 1)
    file = SpoolFile.adopt(path)
    assert file is not None
    list(file.left())
    file.remove()
    assert not path.exists()
    assert path.with_suffix(".damaged").exists()


def test_a_full_disk_leaves_no_half_record(tmp_path: Path) -> None:
    path = tmp_path / "a.spool"
    file = SpoolFile.create(path)
    file.append(b"first")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file.end + 100, before[1]))
    try:
        with pytest.raises(OSError, match="large"):
            file.append(bytes(1000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert path.stat().st_size == file.end
    file.append(b"second")
    file.close()
    assert left(path) == ([b"first", b"second"], 0)


def test_one_process_holds_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.spool"
    file = SpoolFile.create(path)
    file.append(b"first")
    assert SpoolFile.adopt(path) is None
    view = SpoolFile.view(path)
    assert view is not None
    assert [record.content for record in view.news()] == [b"first"]
    file.append(b"second")
    assert [record.content for record in view.news()] == [b"second"]
    view.close()
    file.close()
    assert left(path)[0] == [b"first", b"second"]


def test_a_file_that_was_taken_away_is_not_adopted(tmp_path: Path) -> None:
    assert SpoolFile.adopt(tmp_path / "gone.spool") is None
    assert SpoolFile.view(tmp_path / "gone.spool") is None
    path = tmp_path / "a.spool"
    written(path, RECORDS)
    path.unlink()
    assert SpoolFile.adopt(path) is None


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    target, path = tmp_path / "target", tmp_path / "a.spool"
    target.write_bytes(b"somebody's")
    path.symlink_to(target)
    with pytest.raises(OSError, match=r"links|exists"):
        SpoolFile.create(path)
    assert SpoolFile.adopt(path) is None
    assert target.read_bytes() == b"somebody's"


def test_a_folder_that_another_process_holds_is_an_error_in_time(tmp_path: Path) -> None:
    with FolderLock(tmp_path), pytest.raises(OSError, match="held by another"), FolderLock(tmp_path):
        pass
    with FolderLock(tmp_path):
        assert os.listdir(tmp_path) == ["lock"]
