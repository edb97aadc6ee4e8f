"""Typed configuration of an engine."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from engine.master_keys import MasterKeys
from engine.net.policy import NetPolicy
from engine.tool_policy import ToolPolicy
from events.errors import Refused

__all__ = ("Limits", "OnJournalFailure", "Settings")

OnJournalFailure: TypeAlias = Literal["run_reads", "run", "refuse"]

_COUNTS = frozenset({"preview", "inline_result", "listed_names", "queue", "sync_threads", "parallel", "spool"})
_AT_LEAST_ONE = frozenset({"queue", "sync_threads", "parallel"})
_MOST = 2.0**53
_CENTURY = 3_155_760_000.0


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes and times, with their units.

    :ivar preview: characters of a result's preview
    :ivar inline_result: characters of a result kept in its event; longer ones go to the payload table
    :ivar listed_names: callable names listed to a model that called an unknown one
    :ivar lease: seconds a worker counts as alive after its last heartbeat
    :ivar queue: appends that may wait for the writer before producers wait
    :ivar cleanup: seconds a cancelled call may take to record its end
    :ivar sync_threads: sync tools that may run at once
    :ivar ask: seconds a tool may take to say whether a call of it needs approval
    :ivar decide_within: seconds a call waits for a person's approval, and for its run after that; None: for ever
    :ivar answer_within: seconds a call waits for its client's result, or for input; None: for ever
    :ivar parallel: calls of one turn that run at once in ``execute_all``
    :ivar resume_within: seconds for which an idempotent call whose worker is gone is left to a takeover
    :ivar report_after: seconds after which a call is reported that was approved and not run, or not confirmed
    :ivar spool: bytes of this worker's spool beyond which no call begins while the journal is away
    :raises Refused: if one of them is negative, no number, or more than any machine or clock can hold
    """

    preview: int = 2000
    inline_result: int = 400_000
    listed_names: int = 30
    lease: float = 30.0
    queue: int = 1024
    cleanup: float = 5.0
    sync_threads: int = 256
    ask: float = 10.0
    decide_within: float | None = 604_800.0
    answer_within: float | None = 604_800.0
    parallel: int = 8
    resume_within: float = 3600.0
    report_after: float = 3600.0
    spool: int = 268_435_456

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            least = 1 if name in _AT_LEAST_ONE else 0
            most = _MOST if name in _COUNTS else _CENTURY
            # What is no number compares with nothing.
            if value is not None and not least <= value <= most:
                raise Refused(f"Limits.{name} cannot be {value!r}; give {least} to {most:.0f}")


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How an engine behaves.

    :ivar on_journal_failure: which calls run though their proposal cannot be written to the log, and is spooled on this
        machine instead: ``run_reads``, those of tools with effect ``read``; ``run``, all that need no approval;
        ``refuse``, none
    :ivar spool: the folder below which a journal's spool is; None: the user's folder for state
    :ivar net: where the requests of tools may go
    :ivar tool_policy: which tools turns may have, and which built-in ones are on, off, or ask first
    :ivar master_keys: what credentials are sealed with; None: those of the environment, else of the user's key file
    :ivar tools_path: folders searched for tools besides the built-in one
    :ivar reconcile_interval: seconds between two rounds of ``Engine.reconcile`` in the background; None: none
    """

    on_journal_failure: OnJournalFailure = "run_reads"
    spool: Path | None = None
    tools_path: tuple[Path, ...] = ()
    net: NetPolicy = NetPolicy()
    tool_policy: ToolPolicy = ToolPolicy()
    master_keys: MasterKeys | None = None
    limits: Limits = Limits()
    seal_interval: float = 10.0
    reconcile_interval: float | None = 60.0
