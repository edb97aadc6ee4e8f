"""The keys that everything stored encrypted depends on: what they are, and where a machine has them."""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from engine.state_folder import state_folder
from events.errors import Refused, Unavailable

__all__ = ("KEYS", "KEY_FILE", "ONE_KEY", "MasterKeys", "add_key", "find_master_keys", "key_file", "parse_keys")

ONE_KEY: Final = "CALLJOURNAL_MASTER_KEY"
"""The environment variable that holds one key."""

KEYS: Final = "CALLJOURNAL_MASTER_KEYS"
"""The environment variable that holds several, the current one first."""

KEY_FILE: Final = "master.key"
"""The file below the user's state folder that is made where the environment names no key."""

_SIZE: Final = 32
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,32}")
_HOW: Final = "make one with `openssl rand -base64 32`"


class MasterKeys(msgspec.Struct, frozen=True):
    """Master keys by id. Everything new is sealed under ``current``; the others only open what is older.

    Never shown: ``repr`` names the ids.

    :raises Refused: if an id is not 1 to 32 of ``A-Za-z0-9_-``, a key is not 32 bytes, or the current one is missing
    """

    current: str
    keys: Mapping[str, bytes]

    def __post_init__(self) -> None:
        for name, key in self.keys.items():
            if not _ID.fullmatch(name):
                raise Refused(f"a master key's id has 1 to 32 of A-Z a-z 0-9 _ -; {len(name)} characters do not fit")
            if len(key) != _SIZE:
                raise Refused(f"master key {name!r} has {len(key)} bytes, it needs {_SIZE}; {_HOW}")
        if self.current not in self.keys:
            raise Refused("the current master key is not among the keys")

    def __repr__(self) -> str:
        others = ", ".join(name for name in self.keys if name != self.current)
        return f"<MasterKeys {self.current}{', older: ' if others else ''}{others}>"


def find_master_keys(environ: Mapping[str, str] | None = None) -> MasterKeys:
    """Return the keys of ``CALLJOURNAL_MASTER_KEYS`` or ``CALLJOURNAL_MASTER_KEY``, else those of the key file.

    The key file is made on first need, readable by its owner alone; of two processes that make it at once, both get
    the same key.

    :param environ: None: the process's own
    :raises Refused: if both variables are set, or what one holds is no key
    :raises Unavailable: if the key file cannot be made or read, or others may read it
    """
    environ = os.environ if environ is None else environ
    several, one = environ.get(KEYS, "").strip(), environ.get(ONE_KEY, "").strip()
    if several and one:
        raise Refused(f"{KEYS} and {ONE_KEY} are both set; leave one")
    if several:
        return parse_keys(several, KEYS)
    return parse_keys(one, ONE_KEY) if one else _of_file(key_file())


def parse_keys(text: str, where: str) -> MasterKeys:
    """Read ``id:base64,id:base64``, the current key first; a key without an id gets one that follows from it.

    :param where: what holds the text, for the error
    :raises Refused: if an entry is no key; the text shows nothing of it
    """
    keys: dict[str, bytes] = {}
    for number, entry in enumerate(filter(None, re.split(r"[,\s]+", text)), 1):
        name, colon, encoded = entry.rpartition(":")
        key = _decoded(encoded)
        if key is None:
            raise Refused(f"entry {number} of {where} is no key: it must be {_SIZE} bytes in base64; {_HOW}")
        name = name if colon else _id_of(key)
        if name in keys:
            raise Refused(f"{where} has two keys with one id, or one key twice (entry {number})")
        keys[name] = key
    if not keys:
        raise Refused(f"{where} holds no key; {_HOW}")
    return MasterKeys(next(iter(keys)), keys)


def key_file() -> Path:
    """Return where the key file is, or would be.

    :raises Unavailable: if this user has no place for it
    """
    folder = state_folder()
    if folder is None:
        raise Unavailable(f"there is no place for a master key, for this user has no home; set {ONE_KEY}")
    return folder / KEY_FILE


def add_key() -> str:
    """Put a new key into the key file, as the current one, and return its id; those that are there stay.

    :raises Refused: if the keys are not those of the file, or somebody else is adding one
    :raises Unavailable: if the file cannot be written
    """
    named = next((name for name in (KEYS, ONE_KEY) if os.environ.get(name, "").strip()), None)
    if named is not None:
        raise Refused(f"the keys are those of {named}; put a new one first in {KEYS}, with the older ones behind it")
    path = key_file()
    lock = path.with_name(f"{path.name}.lock")
    _of_file(path)
    try:
        # Two that add at once would each drop the other's, and what is sealed under it.
        os.close(os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        raise Refused(f"somebody else is adding a key; if nobody is, remove {lock}") from None
    try:
        found = _of_file(path)
        new, key = _new_entry()
        older = [f"{name}:{base64.b64encode(found.keys[name]).decode()}\n" for name in found.keys]
        mine = _write_beside(path, "".join([new, *older]))
        mine.replace(path)
        _sync_folder(path.parent)
        return _id_of(key)
    except OSError as error:
        raise Unavailable(f"the master key file {path} cannot be written ({error.strerror})") from error
    finally:
        lock.unlink()


def _decoded(text: str) -> bytes | None:
    standard = text.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        key = base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None
    return key if len(key) == _SIZE else None


def _id_of(key: bytes) -> str:
    return hashlib.sha256(b"calljournal key id" + key).hexdigest()[:8]


def _of_file(path: Path) -> MasterKeys:
    try:
        if not path.exists():
            _make(path)
        if os.name == "posix" and path.stat().st_mode & 0o077:
            raise Unavailable(f"others may read the master key in {path}; chmod 600 it, and consider it known")
        text = path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it holds no text"
        raise Unavailable(f"the master key file {path} cannot be used ({reason}); set {ONE_KEY} instead") from error
    return parse_keys(text, str(path))


def _make(path: Path) -> None:
    """Make the file whole or not at all; whoever is first wins."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    mine = _write_beside(path, _new_entry()[0])
    try:
        # Unlike a rename, a link replaces nothing.
        os.link(mine, path)
        _sync_folder(path.parent)
    except FileExistsError:
        return
    finally:
        mine.unlink()


def _new_entry() -> tuple[str, bytes]:
    key = os.urandom(_SIZE)
    return f"{_id_of(key)}:{base64.b64encode(key).decode()}\n", key


def _write_beside(path: Path, text: str) -> Path:
    mine = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    with open(os.open(mine, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    return mine


def _sync_folder(folder: Path) -> None:
    # A key that a power cut takes away takes everything with it that was sealed under it.
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
