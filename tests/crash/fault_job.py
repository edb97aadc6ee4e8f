"""What a process of the fault matrix is to do, and what it says of it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from engine import Limits, Settings
from tests.crash.fault_awaits import Fault

__all__ = ("Job", "Said", "Task")

Task: TypeAlias = Literal["walk", "stage", "look", "carry on", "reconcile", "compare"]


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One process's work on one path.

    :ivar task: ``walk`` the path once, perhaps struck; ``stage``: be the worker that dies before it is walked;
        ``look`` at what is there once all workers are dead; ``carry on`` to the end of each turn; ``reconcile``;
        ``compare`` the whole log with its table and with what consumers were told
    :ivar url: of the journal
    :ivar folder: where effects and what consumers were told are noted
    :ivar at: the await at which the fault comes
    :ivar turns: those that are staged, looked at or carried on
    """

    task: Task
    path: str
    backend: str
    url: str
    folder: str
    fault: Fault = "none"
    at: int = 0
    turns: tuple[str, ...] = ()

    @property
    def turn(self) -> str:
        """The message of the one turn that is walked."""
        return f"{self.fault}-{self.at}"

    def settings(self, limits: Limits) -> Settings:
        """Return how an engine of this job behaves: what it does in the background is not part of a path."""
        return Settings(limits=limits, spool=Path(self.folder) / "spool", reconcile_interval=None)

    @property
    def effects(self) -> str:
        """The file in which the tool leaves its marks."""
        return f"{self.folder}/effects"

    @property
    def told(self) -> str:
        """The file in which consumers note what they were told."""
        return f"{self.folder}/told"


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it.

    :ivar killed: it died of SIGKILL
    :ivar awaits: how many it had, where it came to its end
    :ivar reached: the fault came
    :ivar problems: what must not be
    """

    killed: bool = False
    awaits: int = 0
    reached: bool = False
    problems: tuple[str, ...] = ()
