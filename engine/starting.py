"""Starting and stopping an engine: the log, the lease, and the two things that go on in the background."""

from __future__ import annotations

import logging

import anyio
import anyio.abc

from engine.arguments import ArgumentChecker
from engine.contract import Tool
from engine.defaults import default_rows
from engine.discovery import ToolManager
from engine.guards import ResultGuard
from engine.journal import Journal
from engine.lease import Lease
from engine.loading import Instances
from engine.migration import ENGINE_CHAIN
from engine.rows import ToolRow
from engine.runtime import Runtime
from engine.settings import Settings
from engine.telemetry import Telemetry
from engine.toolsets import Toolsets
from events.errors import JournalError, Refused
from events.keys import new_id
from events.log import EventLog
from events.migration import EVENTS_CHAIN
from events.opening import open_log
from events.seal import seal
from projections.attempts import AttemptsProjection
from projections.migration import PROJECTIONS_CHAIN

__all__ = ("CHAINS", "Running", "start")

CHAINS = (EVENTS_CHAIN, PROJECTIONS_CHAIN, ENGINE_CHAIN)
"""The migration chains of a whole journal, in the order in which they are applied."""

_log = logging.getLogger("calljournal.engine")


class Running:
    """An engine's background: its heartbeat and its sealer."""

    def __init__(self, log: EventLog, lease: Lease, tasks: anyio.abc.TaskGroup) -> None:
        self._log = log
        self._lease = lease
        self._tasks = tasks

    async def stop(self) -> None:
        """End the background, give up the lease, close the log; completes even if the caller is cancelled."""
        self._tasks.cancel_scope.cancel()
        await self._tasks.__aexit__(None, None, None)
        with anyio.CancelScope(shield=True):
            await self._lease.end()
            await self._log.aclose()


async def start(
    url: str,
    rows: tuple[ToolRow, ...],
    tools: tuple[type[Tool], ...],
    guards: tuple[ResultGuard, ...],
    settings: Settings,
) -> tuple[Runtime, Running]:
    """Open everything an engine needs; nothing stays open if that fails."""
    if settings.on_journal_failure != "refuse":
        raise Refused(
            f"on_journal_failure={settings.on_journal_failure!r} is not available in this release; use 'refuse'"
        )
    manager = ToolManager(settings.tools_path, tools)
    toolsets = Toolsets(manager, rows, default_rows(manager))
    telemetry = Telemetry()
    log = await open_log(url, AttemptsProjection(), CHAINS, queue=settings.limits.queue, observe=telemetry.batch)
    lease = Lease(log.store, f"worker-{new_id()}", settings.limits.lease)
    try:
        await lease.begin()
        tasks = anyio.create_task_group()
        await tasks.__aenter__()
    except BaseException:
        with anyio.CancelScope(shield=True):
            await log.aclose()
        raise
    tasks.start_soon(lease.heartbeat)
    tasks.start_soon(_keep_sealed, log, settings.seal_interval)
    runtime = Runtime(
        log=log,
        journal=Journal(log),
        worker=lease.worker,
        toolsets=toolsets,
        instances=Instances(),
        checker=ArgumentChecker(),
        guards=guards,
        settings=settings,
        telemetry=telemetry,
        threads=anyio.CapacityLimiter(settings.limits.sync_threads),
    )
    return runtime, Running(log, lease, tasks)


async def _keep_sealed(log: EventLog, interval: float) -> None:
    while True:
        await anyio.sleep(interval)
        try:
            await seal(log)
        except JournalError as error:
            _log.warning("the log could not be sealed: %s", error)
