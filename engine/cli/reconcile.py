"""``calljournal reconcile``: what is stuck is found, and closed where that is safe."""

from __future__ import annotations

from math import ceil

import anyio
import click

from engine.cli.failure import DONE, NO, Interrupted
from engine.cli.options import Choice, taking
from engine.engine import Engine
from engine.stuck import ReconcileReport

__all__ = ("reconcile", "reconciled")

_ROUNDS = 3
"""How often to wait, where the database went away meanwhile and it all begins anew."""


@click.command()
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.option("--no-wait", is_flag=True, help="Leave calls whose worker cannot be told yet to be gone.")
@taking("database", "as_json")
def reconcile(choice: Choice, dry_run: bool, no_wait: bool) -> int:
    """Find what is stuck, of every tenant, and close it.

    Calls whose worker is gone, and calls that waited past their deadline, are closed. Calls that were approved and not
    run, or executed and not confirmed, are only reported. A call that a live worker runs is left alone: where a worker
    looks gone, this waits for half a minute before it believes that.
    """
    try:
        report = anyio.run(_reconcile, choice, dry_run, not (dry_run or no_wait))
    except KeyboardInterrupt:
        raise Interrupted("interrupted; what was closed is recorded, and the same command goes on") from None
    return NO if report.counts.failing or (report.counts.held and not dry_run) else DONE


async def _reconcile(choice: Choice, dry_run: bool, wait: bool) -> ReconcileReport:
    from engine.cli.output import Output
    from engine.cli.stuck_lines import print_reconciliation
    from engine.cli.working import working

    output = Output(choice)
    async with working(choice) as engine:
        report = await reconciled(engine, dry_run=dry_run, wait=wait)
    print_reconciliation(output, report)
    return report


async def reconciled(engine: Engine, *, dry_run: bool, wait: bool) -> ReconcileReport:
    """Reconcile, and return what was found.

    :param wait: where calls are held because this engine is too young to tell, wait until it is not, and close them
    :raises LogUnavailable: if the database cannot be read or written; what was closed is closed
    """
    from engine.cli.output import note, progress_bar

    report = await engine.reconcile(dry_run=dry_run)
    for _ in range(_ROUNDS):
        if not wait or not report.counts.held:
            break
        seconds = ceil(report.steady_in)
        whose = "1 call" if report.counts.held == 1 else f"{report.counts.held} calls"
        note(f"{whose} of workers that look gone: making sure of it takes {seconds} s")
        with progress_bar("making sure", "s") as advance:
            for second in range(seconds):
                advance(second, seconds)
                await anyio.sleep(min(1.0, report.steady_in - second))
        report = report.followed_by(await engine.reconcile())
    return report
