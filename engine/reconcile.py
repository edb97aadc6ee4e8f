"""``reconcile``: what is stuck, of every tenant, is found, and closed where that is safe (DESIGN 6, Recovery)."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final, TypeAlias

import anyio

from engine.closing import close_stuck
from engine.gauges import measure
from engine.lease import forget_leases
from engine.runtime import Runtime
from engine.stuck import LISTED, ReconcileReport, StuckCall, StuckCounts
from engine.suspects import Suspect, abandoned, approved, oldest_unconfirmed, overdue
from engine.verdicts import Finding, judge
from events.errors import JournalError
from events.transitions import Gate
from events.types import PauseType

__all__ = ("reconcile", "reconcile_forever")

_log = logging.getLogger("calljournal.reconcile")

_AT_ONCE: Final = 8
"""Calls closed at one time: their reads share the database's few connections with everybody else's."""

_REMEMBERED: Final = 604_800.0
"""Seconds for which the lease of a worker that died is kept at least: it says when that was."""

_RUNNING: Final[tuple[Gate, ...]] = ("open", "claimed")
_WAITING: Final[tuple[PauseType, ...]] = ("awaiting_approval", "requires_client_execution", "requires_input")

_Page: TypeAlias = Callable[[Suspect | None], Awaitable[list[Suspect]]]


async def reconcile(runtime: Runtime, dry_run: bool = False) -> ReconcileReport:
    """Find what is stuck, of every tenant, close what is safe to close, and say what was found.

    Each call is closed by an append of its own, which checks that the call stands as it was found and that its worker's
    lease is over still; whoever else reconciles at the same time closes others. Cancelled, or broken off by a database
    that went away, what was closed is closed, and the next round goes on.

    :param dry_run: append nothing
    :raises LogUnavailable: if the database cannot be read or written
    """
    now = await runtime.rounds.now()
    if runtime.log.store.dialect == "null":
        return ReconcileReport(dry_run=dry_run, at=now)
    report = await _Round(runtime, now, dry_run).run()
    runtime.rounds.ended(report)
    await measure(runtime, report)
    return report


async def reconcile_forever(runtime: Runtime, interval: float) -> None:
    """Reconcile again and again, until cancelled; a round that fails is logged, and the next one comes all the same.

    :param interval: seconds between two rounds
    """
    # Workers that were started together shall not all come at once.
    await anyio.sleep(interval * (0.5 + int(runtime.worker[-4:], 16) / 0x20000))
    while True:
        try:
            report = await reconcile(runtime)
        except Exception as error:
            # Whatever it is: the background of an engine must outlive it.
            runtime.rounds.broke()
            _log.warning("a reconciliation broke off: %s", error, exc_info=not isinstance(error, JournalError))
        else:
            _tell(report)
        await anyio.sleep(interval)


def _tell(report: ReconcileReport) -> None:
    for problem in report.problems:
        _log.warning("%s", problem)
    if report.counts.closed:
        _log.info("reconciled: %s", report.counts)


class _Round:
    """One reconciliation under way."""

    def __init__(self, runtime: Runtime, now: datetime, dry_run: bool) -> None:
        self._runtime = runtime
        self._store = runtime.log.store
        self._limits = runtime.settings.limits
        self._now = now
        self._dry_run = dry_run
        self._steady_in = 0.0
        self._counts: Counter[str] = Counter()
        self._calls: list[StuckCall] = []
        self._problems: list[str] = []

    async def run(self) -> ReconcileReport:
        self._steady_in = await self._runtime.rounds.lease.assured()
        for pause_type in _WAITING:
            await self._each(partial(overdue, self._store, pause_type, self._now))
        await self._each(partial(approved, self._store, self._runtime.log.codec))
        for gate in _RUNNING:
            await self._each(partial(abandoned, self._store, gate, self._runtime.worker), of_dead_workers=True)
        await self._report_unconfirmed()
        if not (self._dry_run or self._steady_in):
            await forget_leases(self._store, max(_REMEMBERED, 2 * self._limits.resume_within))
        return ReconcileReport(
            dry_run=self._dry_run,
            at=self._now,
            steady_in=self._steady_in,
            counts=StuckCounts(**self._counts),
            calls=tuple(self._calls),
            problems=tuple(self._problems),
        )

    async def _each(self, read: _Page, of_dead_workers: bool = False) -> None:
        last: Suspect | None = None
        while page := await read(last):
            last = page[-1]
            if of_dead_workers:
                # The page was read between two renewals; only now is known that there was no gap.
                self._steady_in = await self._runtime.rounds.lease.assured()
            await self._deal_with(page)

    async def _deal_with(self, page: Sequence[Suspect]) -> None:
        judged = [judge(suspect, self._now, self._limits, self._steady_in) for suspect in page]
        closing: list[Finding] = []
        for finding in judged:
            if finding is not None and finding.closing and not self._dry_run:
                closing.append(finding)
            elif finding is not None:
                self._note(finding)
        for first in range(0, len(closing), _AT_ONCE):
            await self._close(closing[first : first + _AT_ONCE])

    async def _close(self, findings: Sequence[Finding]) -> None:
        failing = self._counts["failing"]
        async with anyio.create_task_group() as tasks:
            for finding in findings:
                tasks.start_soon(self._close_one, finding)
        if self._counts["failing"] > failing:
            # One call's trouble is its own; a database that is away ends the round here.
            await self._runtime.rounds.lease.assured()

    async def _close_one(self, finding: Finding) -> None:
        try:
            closed = await close_stuck(self._runtime, finding)
        except JournalError as error:
            self._counts["failing"] += 1
            if len(self._problems) < LISTED:
                self._problems.append(f"call {finding.suspect.key!r} is stuck and could not be closed: {error}")
            return
        if closed:
            self._note(finding)
        else:
            self._counts["moved"] += 1

    def _note(self, finding: Finding) -> None:
        self._counts[finding.kind] += 1
        if self._counts[finding.kind] <= LISTED:
            self._calls.append(finding.call(self._now, dry_run=self._dry_run))

    async def _report_unconfirmed(self) -> None:
        before = self._now - timedelta(seconds=self._limits.report_after)
        count, oldest = await oldest_unconfirmed(self._store, before, LISTED)
        self._counts["unconfirmed"] = count
        for suspect in oldest:
            self._calls.append(Finding("unconfirmed", suspect).call(self._now, dry_run=self._dry_run))
