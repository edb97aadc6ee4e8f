"""One file of a spool: records that are on disk before they count, held by one process at a time.

A record is its length and its CRC-32, four bytes each, then its content. A process that dies while it writes leaves a
torn record at the end, which readers pass over: nobody was told of it.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import stat
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Final

import msgspec

__all__ = ("FolderLock", "SpoolFile", "SpoolRecord", "make_folder")

_MAGIC: Final = b"calljournal spool 1\n"
_HEAD: Final = struct.Struct(">II")
_MODE: Final = 0o600
_LARGEST: Final = 1 << 31
_STRANGE: Final = frozenset({errno.EACCES, errno.EISDIR, errno.ELOOP, errno.ENXIO, errno.EPERM})
"""Why something cannot be opened that no spool has put there."""
_SEARCHED: Final = 1 << 20
"""Bytes that are looked through for the next record behind one that is damaged."""

_log = logging.getLogger("calljournal.spool")


class SpoolRecord(msgspec.Struct, frozen=True):
    """A record's content, and where it stands in its file."""

    offset: int
    content: bytes


class SpoolFile:
    """A file of records. Not thread safe: its spool uses it from one thread.

    :ivar end: where the next record goes
    :ivar damaged: records that cannot be read although others follow them
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self.end = len(_MAGIC)
        self.damaged = 0
        self._descriptor = descriptor

    def __repr__(self) -> str:
        return f"<SpoolFile {self.path} {self.end} bytes>"

    @classmethod
    def create(cls, path: Path) -> SpoolFile:
        """Make a file and hold it. :raises OSError: if that cannot be done"""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, _MODE)
        try:
            _lock_patiently(descriptor, path)
            _write(descriptor, _MAGIC, 0)
            os.fsync(descriptor)
            _sync_folder(path.parent)
        except BaseException:
            os.close(descriptor)
            with contextlib.suppress(OSError):
                path.unlink()
            raise
        return cls(path, descriptor)

    @classmethod
    def adopt(cls, path: Path) -> SpoolFile | None:
        """Hold a file whose process is gone; None: it lives, or the file is gone, or none of ours.

        :raises OSError: if it cannot be read
        """
        descriptor = _opened(path, os.O_RDWR)
        if descriptor is None:
            return None
        if not _locked(descriptor) or not _is_at(descriptor, path):
            os.close(descriptor)
            return None
        if os.fstat(descriptor).st_size < len(_MAGIC):
            # Its process died while it made it.
            _write(descriptor, _MAGIC, 0)
        return cls(path, descriptor)

    @classmethod
    def view(cls, path: Path) -> SpoolFile | None:
        """Look into a file that another process holds; None: it is gone, or none of ours."""
        descriptor = _opened(path, os.O_RDONLY)
        return None if descriptor is None else cls(path, descriptor)

    @property
    def is_there(self) -> bool:
        """Whether the file is still where others look for it."""
        return _is_at(self._descriptor, self.path)

    def append(self, content: bytes, *, sync: bool = True) -> int:
        """Write a record and return where it stands; with ``sync`` it is on disk then. A failure leaves no record.

        :raises OSError: if it cannot be written
        """
        offset = self.end
        record = _HEAD.pack(len(content), zlib.crc32(content)) + content
        try:
            _write(self._descriptor, record, offset)
            if sync:
                os.fsync(self._descriptor)
        except BaseException:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, offset)
            raise
        self.end = offset + len(record)
        return offset

    def read(self, offset: int) -> bytes:
        """Return the content of the record at ``offset``. :raises OSError: if it cannot be read"""
        record = self._record(offset, os.fstat(self._descriptor).st_size)
        if record is None or record.content is None:
            raise OSError(f"{self.path} is damaged at byte {offset}")
        return record.content

    def news(self) -> Iterator[SpoolRecord]:
        """Yield the records from ``end`` on, which moves with them. :raises OSError: if they cannot be read"""
        size = os.fstat(self._descriptor).st_size
        while (found := self._record(self.end, size)) is not None and found.content is not None:
            yield SpoolRecord(self.end, found.content)
            self.end = found.following

    def left(self) -> Iterator[SpoolRecord]:
        """Yield what there is to read of a file that nobody writes to any more, and cut off what was torn at its end.

        A record that the disk has lost does not take those behind it along.

        :raises OSError: if it cannot be read
        """
        while True:
            yield from self.news()
            beyond = self._beyond_damage()
            if beyond is None:
                break
            self.damaged += 1
            self.end = beyond
        os.ftruncate(self._descriptor, self.end)

    def _beyond_damage(self) -> int | None:
        """Return where the next whole record begins after one that is not; None: there is none, it was the last."""
        size = os.fstat(self._descriptor).st_size
        spoilt = self._record(self.end, size)
        if spoilt is not None and (found := self._record(spoilt.following, size)) is not None and found.content:
            # Its length is right: what is longer than is looked through hides nothing.
            return spoilt.following
        for offset in range(self.end + 1, min(size - _HEAD.size, self.end + _SEARCHED)):
            found = self._record(offset, size)
            if found is not None and found.content is not None:
                return offset
        return None

    def _record(self, offset: int, size: int) -> _Found | None:
        head = os.pread(self._descriptor, _HEAD.size, offset)
        if len(head) < _HEAD.size:
            return None
        length, checksum = _HEAD.unpack(head)
        following = offset + _HEAD.size + length
        if following > size or length > _LARGEST or not length:
            return None
        content = os.pread(self._descriptor, length, offset + _HEAD.size)
        return _Found(content if zlib.crc32(content) == checksum else None, following)

    def remove(self) -> None:
        """Take the file away, whose records are all in the log; a damaged one is kept beside, for people."""
        with contextlib.suppress(FileNotFoundError):
            if self.damaged:
                self.path.rename(self.path.with_suffix(".damaged"))
            else:
                self.path.unlink()
        self.close()

    def close(self) -> None:
        """Let go of the file; again: nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class _Found(msgspec.Struct, frozen=True):
    content: bytes | None
    following: int


class FolderLock:
    """Held while a spool's folder is looked through and written to: one process of a machine after the other.

    :raises OSError: on entering, if it cannot be had within some seconds
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "lock"
        self._descriptor = -1

    def __enter__(self) -> None:
        _require_private(self._path.parent)
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, _MODE)
        try:
            _lock_patiently(self._descriptor, self._path)
        except BaseException:
            os.close(self._descriptor)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)


def _require_private(folder: Path) -> None:
    """Refuse a folder in which others could put what then is written to the log."""
    found = folder.stat()
    if not _is_trusted(found) or found.st_mode & stat.S_IWOTH:
        raise PermissionError(f"{folder} is another user's, or everyone may write to it; remove it, or chmod 700")


def _is_trusted(found: os.stat_result) -> bool:
    return found.st_uid in (os.geteuid(), 0)


def _opened(path: Path, how: int) -> int | None:
    """Open a spool's file that is there; None: it is gone, or something else, which must not keep out the others."""
    try:
        # What opens without waiting: a pipe would wait for its writer.
        descriptor = os.open(path, how | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno not in _STRANGE:
            raise
        _log.warning("%s is passed over: %s", path, os.strerror(error.errno))
        return None
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode) and _is_trusted(found) and _MAGIC.startswith(os.pread(descriptor, len(_MAGIC), 0)):
        return descriptor
    os.close(descriptor)
    _log.warning("%s is passed over: it is another user's, of another release, or no spool", path)
    return None


def _lock_patiently(descriptor: int, path: Path) -> None:
    import time

    deadline = time.monotonic() + 5.0
    while not _locked(descriptor):
        if time.monotonic() > deadline:
            raise BlockingIOError(f"{path} is held by another process")
        time.sleep(0.005)


def _locked(descriptor: int) -> bool:
    """Take the lock that the system gives up for a process that dies; False: another process has it."""
    # Here: where the system is no POSIX, there is none, and no spool.
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _write(descriptor: int, data: bytes, offset: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, offset)
        view, offset = view[written:], offset + written


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it, for this user alone; there after a power cut, too.

    :raises OSError: if that cannot be done
    """
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    _sync_folder(folder.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
