"""Where a journal's spool is on this machine."""

from __future__ import annotations

import hashlib
import logging
import re
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from engine.settings import Settings
from engine.state_folder import state_folder

__all__ = ("spool_place",)

_log = logging.getLogger("calljournal.spool")

_PLAIN: Final = re.compile(r"[^A-Za-z0-9._-]+")


def spool_place(url: str, settings: Settings) -> Path | None:
    """Return the folder of a journal's spool; None where the journal itself is nowhere on disk, or nobody has a home.

    Below ``Settings.spool``, else ``$XDG_STATE_HOME/calljournal/spool``, else ``~/.local/state/calljournal/spool``: a
    folder per database, named for it. Not beside an SQLite file, whose disk may be the one that is full.
    """
    journal = _journal(url)
    if journal is None:
        return None
    ours = state_folder()
    place = settings.spool or (None if ours is None else ours / "spool")
    if place is None:
        _log.warning("no spool, so an outage stops every call: this user has no home; set XDG_STATE_HOME")
        return None
    name = _PLAIN.sub("-", journal.rpartition("/")[2])[:40]
    digest = hashlib.sha256(journal.encode()).hexdigest()[:16]
    return place / f"{name}-{digest}"


def _journal(url: str) -> str | None:
    """Return what tells a database from every other; never who connects, and with which password."""
    scheme, _, rest = url.partition("://")
    if scheme == "sqlite":
        path = rest.removeprefix("/")
        return f"sqlite:{Path(path).resolve()}" if path and path != ":memory:" else None
    if scheme == "null":
        return None
    parts = urlsplit(url)
    where = sorted(value for name, value in parse_qsl(parts.query) if name in ("host", "port"))
    host = parts.netloc.rpartition("@")[2].lower()
    default = "" if not host or host.rpartition(":")[2].isdigit() else ":5432"
    return f"postgresql:{host}{default}{''.join(where)}{parts.path}"
