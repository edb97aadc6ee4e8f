"""What one open engine is made of, for the files that do its work."""

from __future__ import annotations

import anyio
import msgspec

from engine.arguments import ArgumentChecker
from engine.guards import ResultGuard
from engine.journal import Journal
from engine.loading import Instances
from engine.settings import Settings
from engine.telemetry import Telemetry
from engine.toolsets import Toolsets
from events.log import EventLog

__all__ = ("Runtime",)


class Runtime(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of one open engine.

    :ivar worker: the engine's id in the lease table and in every Proposed it makes
    :ivar threads: bounds the sync tools that run at once
    """

    log: EventLog
    journal: Journal
    worker: str
    toolsets: Toolsets
    instances: Instances
    checker: ArgumentChecker
    guards: tuple[ResultGuard, ...]
    settings: Settings
    telemetry: Telemetry
    threads: anyio.CapacityLimiter
