"""Starting and stopping an engine: the log, the lease, and what goes on in the background."""

from __future__ import annotations

import logging
from functools import partial
from typing import get_args

import anyio
import anyio.abc

from engine.arguments import ArgumentChecker
from engine.contract import Tool
from engine.conversations import Conversations
from engine.credentials import Vault
from engine.defaults import default_rows, require_usable
from engine.discovery import ToolManager
from engine.draining import Draining
from engine.endings import Endings
from engine.flight import Flights
from engine.guards import ResultGuard
from engine.journal import Journal
from engine.last_appends import LastAppends
from engine.lease import Lease, database_time
from engine.loading import Instances
from engine.migration import ENGINE_CHAIN
from engine.reconcile import reconcile_forever
from engine.rounds import Rounds
from engine.row_book import RowBook
from engine.rows import ToolRow
from engine.rulebook import Rulebook
from engine.running import ToolRunner, describe_exception
from engine.runtime import Runtime
from engine.secret_book import SecretBook
from engine.services import Services
from engine.settings import OnJournalFailure, Settings
from engine.spool import Spool, open_spool
from engine.telemetry import Telemetry
from engine.toolsets import Toolsets
from events.errors import JournalError, Refused
from events.keys import new_id
from events.log import EventLog
from events.migration import EVENTS_CHAIN
from events.opening import open_log
from events.persistence import run_to_end
from events.seal import seal
from projections.attempts import AttemptsProjection
from projections.migration import PROJECTIONS_CHAIN

__all__ = ("CHAINS", "Running", "start")

CHAINS = (EVENTS_CHAIN, PROJECTIONS_CHAIN, ENGINE_CHAIN)
"""The migration chains of a whole journal, in the order in which they are applied."""

_log = logging.getLogger("calljournal.engine")


class Running:
    """An engine's background: heartbeat, sealer, reconciler, and the last appends of calls that nobody waits for."""

    def __init__(self, runtime: Runtime, lease: Lease, tasks: anyio.abc.TaskGroup) -> None:
        self._runtime = runtime
        self._lease = lease
        self._tasks = tasks

    async def stop(self) -> None:
        """End the background, close what is in flight, give up the lease, close the log.

        Completes even if the caller is cancelled.
        """
        self._runtime.last_appends.close()
        try:
            with anyio.move_on_after(self._runtime.settings.limits.cleanup, shield=True):
                await self._runtime.services.aclose()
        except Exception as error:  # whatever tools keep: the journal must still be closed in order
            _log.warning("what tools share could not be closed: %s", describe_exception(error))
        try:
            self._tasks.cancel_scope.cancel()
            # Without what ended the engine's body: the group would wrap it.
            await self._tasks.__aexit__(None, None, None)
        finally:
            await run_to_end(self._release)

    async def _release(self) -> None:
        try:
            await self._runtime.flights.leave_all()
            await self._drain()
            await self._lease.end()
            # An engine of one command never lives to its first interval.
            with anyio.move_on_after(self._runtime.settings.limits.cleanup):
                await _seal(self._runtime.log)
        finally:
            await _close(self._runtime.log, self._runtime.spool)

    async def _drain(self) -> None:
        spool, draining = self._runtime.spool, self._runtime.draining
        if draining is None or spool is None or not spool.waiting:
            return
        await _drain(draining, self._runtime.settings.limits.cleanup)
        left = spool.statistics().depth
        if left:
            _log.warning("%d calls are left in %s; the next engine on this machine writes them", left, spool.folder)


async def start(
    url: str,
    rows: tuple[ToolRow, ...],
    tools: tuple[type[Tool], ...],
    guards: tuple[ResultGuard, ...],
    settings: Settings,
) -> tuple[Runtime, Running]:
    """Open everything an engine needs; nothing stays open if that fails."""
    known = get_args(OnJournalFailure)
    if settings.on_journal_failure not in known:
        raise Refused(f"on_journal_failure={settings.on_journal_failure!r} is not known; use one of {known}")
    manager = ToolManager(settings.tools_path, tools)
    require_usable(settings.tool_policy, manager, rows)
    defaults = default_rows(manager, settings.tool_policy)
    telemetry = Telemetry()
    log = await open_log(url, AttemptsProjection(), CHAINS, queue=settings.limits.queue, observe=telemetry.batch)
    lease = Lease(log.store, f"worker-{new_id()}", settings.limits.lease)
    tasks = anyio.create_task_group()
    last_appends = LastAppends(tasks, settings.limits.cleanup)
    telemetry.queued = lambda: log.statistics().writer.waiting
    spool = open_spool(url, lease.worker, settings)
    services = Services(settings.net, vault=Vault(settings.master_keys), store=log.store, tasks=tasks)
    toolsets = Toolsets(manager, rows, defaults, RowBook(log.store), services, settings.tool_policy)
    runtime = _runtime(log, lease, toolsets, last_appends, guards, settings, telemetry, spool, services)
    draining = runtime.draining
    try:
        await _begin(lease, runtime)
        if draining is not None:
            await _drain(draining, settings.limits.cleanup)
        await tasks.__aenter__()
    except BaseException:
        await run_to_end(partial(_close, log, spool))
        raise
    tasks.start_soon(lease.heartbeat)
    tasks.start_soon(_keep_sealed, log, settings.seal_interval)
    if settings.reconcile_interval is not None:
        tasks.start_soon(reconcile_forever, runtime, settings.reconcile_interval)
    if draining is not None:
        tasks.start_soon(draining.run)
    return runtime, Running(runtime, lease, tasks)


async def _begin(lease: Lease, runtime: Runtime) -> None:
    await lease.begin()
    store = runtime.log.store
    if store.dialect != "null":
        from engine.epoch import read_epoch

        epoch = await read_epoch(store)
        runtime.rulebook.begin(epoch)
        runtime.toolsets.begin(epoch)


async def _close(log: EventLog, spool: Spool | None) -> None:
    try:
        await log.aclose()
    finally:
        if spool is not None:
            await spool.aclose()


async def _drain(draining: Draining, seconds: float) -> None:
    """Write what is spooled to the log, as far as that can be done in time."""
    with anyio.move_on_after(seconds):
        await draining.look()


def _runtime(
    log: EventLog,
    lease: Lease,
    toolsets: Toolsets,
    last_appends: LastAppends,
    guards: tuple[ResultGuard, ...],
    settings: Settings,
    telemetry: Telemetry,
    spool: Spool | None,
    services: Services,
) -> Runtime:
    journal = Journal(log, telemetry.transition)
    endings = Endings(journal, spool)
    draining = None if spool is None else Draining(spool, log, journal, lease.keep, telemetry.spooled)
    return Runtime(
        log=log,
        journal=journal,
        endings=endings,
        worker=lease.worker,
        toolsets=toolsets,
        conversations=Conversations(log),
        services=services,
        instances=Instances(services),
        secrets=SecretBook(services.vault),
        checker=ArgumentChecker(),
        rulebook=Rulebook(log.store),
        runner=ToolRunner(settings.limits),
        rounds=Rounds(lease, partial(database_time, log.store)),
        last_appends=last_appends,
        flights=Flights(journal, endings, last_appends, telemetry),
        spool=spool,
        draining=draining,
        guards=guards,
        settings=settings,
        telemetry=telemetry,
    )


async def _keep_sealed(log: EventLog, interval: float) -> None:
    while True:
        await anyio.sleep(interval)
        await _seal(log)


async def _seal(log: EventLog) -> None:
    try:
        await seal(log)
    except JournalError as error:
        _log.warning("the log could not be sealed: %s", error)
