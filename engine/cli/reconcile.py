"""``calljournal reconcile``: what is stuck is found, and closed where that is safe."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import anyio
import click
import msgspec

from engine.cli.failure import DONE, Interrupted
from engine.cli.options import Choice, taking

__all__ = ("Reconciler", "reconcile", "report_lines")


@runtime_checkable
class Reconciler(Protocol):
    """What can reconcile: the engine (DESIGN 9)."""

    async def reconcile(self, dry_run: bool = False) -> msgspec.Struct:
        """Find what is stuck, close what is safe to close unless ``dry_run``, and return a report."""
        ...


@click.command()
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@taking("database", "as_json")
def reconcile(choice: Choice, dry_run: bool) -> int:
    """Find what is stuck, of every tenant, and close it.

    Calls whose worker is gone, and calls that waited past their deadline, are closed. Calls that were approved and not
    run, or executed and not confirmed, are only reported. A call that a live worker runs is left alone.
    """
    try:
        anyio.run(_reconcile, choice, dry_run)
    except KeyboardInterrupt:
        raise Interrupted("interrupted; what was closed is recorded, and the same command goes on") from None
    return DONE


async def _reconcile(choice: Choice, dry_run: bool) -> None:
    from engine.cli.output import Output
    from engine.cli.working import working
    from events.errors import Refused

    output = Output(choice)
    async with working(choice) as engine:
        if not isinstance(engine, Reconciler):
            raise Refused("this release cannot reconcile yet")
        report = await engine.reconcile(dry_run=dry_run)
    if output.as_json:
        output.record(msgspec.to_builtins(report))
    else:
        for line in report_lines(report):
            output.console.print(line, soft_wrap=True)
    output.flush()


def report_lines(report: msgspec.Struct) -> list[str]:
    """Return a report as lines: each thing found with what became of it, then whatever is a count."""
    from engine.cli.plain import json_text, one_line

    entries: list[str] = []
    counts: list[str] = []
    for name in report.__struct_fields__:
        value: Any = getattr(report, name)
        title = name.replace("_", " ")
        if isinstance(value, str | int | float | bool | None):
            counts.append(f"{title}: {one_line(str(value))}")
        elif isinstance(value, list | tuple):
            entries += [f"{title}: {one_line(str(item))}" for item in value]
            counts.append(f"{title}: {len(value)}")
        else:
            counts.append(f"{title}: {json_text(msgspec.to_builtins(value))}")
    return [*entries, ", ".join(counts)]
