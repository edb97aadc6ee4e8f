"""What one open engine is made of, for the files that do its work."""

from __future__ import annotations

import msgspec

from engine.arguments import ArgumentChecker
from engine.conversations import Conversations
from engine.draining import Draining
from engine.endings import Endings
from engine.flight import Flights
from engine.guards import ResultGuard
from engine.journal import Journal
from engine.last_appends import LastAppends
from engine.loading import Instances
from engine.rounds import Rounds
from engine.rulebook import Rulebook
from engine.running import ToolRunner
from engine.secret_book import SecretBook
from engine.services import Services
from engine.settings import Settings
from engine.spool import Spool
from engine.telemetry import Telemetry
from engine.toolsets import Toolsets
from events.log import EventLog

__all__ = ("Runtime",)


class Runtime(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of one open engine.

    :ivar worker: the engine's id in the lease table and in every Proposed it makes
    :ivar spool: what is kept while the log cannot be written, and ``draining`` writes it; None: nothing can be kept
    """

    log: EventLog
    journal: Journal
    endings: Endings
    worker: str
    toolsets: Toolsets
    conversations: Conversations
    services: Services
    instances: Instances
    secrets: SecretBook
    checker: ArgumentChecker
    rulebook: Rulebook
    runner: ToolRunner
    rounds: Rounds
    last_appends: LastAppends
    flights: Flights
    spool: Spool | None
    draining: Draining | None
    guards: tuple[ResultGuard, ...]
    settings: Settings
    telemetry: Telemetry
