"""Where calljournal keeps what belongs to this machine and this user."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ("state_folder",)


def state_folder() -> Path | None:
    """Return ``$XDG_STATE_HOME/calljournal``, else ``~/.local/state/calljournal``; None where nobody has a home."""
    home = os.environ.get("XDG_STATE_HOME")
    if home and Path(home).is_absolute():
        return Path(home) / "calljournal"
    try:
        return Path.home() / ".local" / "state" / "calljournal"
    except RuntimeError:
        # A container's user that the system does not know, with no $HOME.
        return None
