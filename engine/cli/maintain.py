"""``calljournal verify``, ``rebuild`` and ``migrate``: the care of a journal."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import anyio
import click

from engine.cli.failure import DONE, NO, Interrupted
from engine.cli.options import Choice, taking

__all__ = ("migrate", "rebuild", "verify")


@click.command()
@click.option(
    "--resume",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Keep there how far it has come, and begin there if it was interrupted.",
)
@taking("database", "as_json")
def verify(choice: Choice, resume: Path | None) -> int:
    """Check the log and its table.

    Folds the whole log again, compares it with tool_call_attempts, and checks the seals. Writes nothing.

    Exit code 1: something differs; each difference is a line.
    """
    try:
        return DONE if anyio.run(partial(_verify, choice, resume)) else NO
    except KeyboardInterrupt:
        advice = f"the same command goes on where it stood ({resume})" if resume else "with --resume FILE it can go on"
        raise Interrupted(f"interrupted, nothing was written; {advice}") from None


async def _verify(choice: Choice, resume: Path | None) -> bool:
    from engine.cli.database import opened
    from engine.cli.output import Output, progress_bar
    from engine.cli.reporting import print_report
    from engine.cli.resuming import ResumeFile
    from projections.verify import verify

    output = Output(choice)
    kept = ResumeFile(resume)
    async with opened(choice.url) as log:
        with progress_bar("verify", "positions") as progress:
            report = await verify(log, progress=progress, resume=kept.read(), checkpoint=kept.write)
    kept.remove()
    print_report(output, report, "the log, its seals and tool_call_attempts agree")
    return report.ok


@click.command()
@taking("database", "as_json")
def rebuild(choice: Choice) -> int:
    """Make the table anew from the log.

    The old tool_call_attempts serves until the new one takes its place."""
    try:
        return DONE if anyio.run(_rebuild, choice) else NO
    except KeyboardInterrupt:
        raise Interrupted("interrupted; the table is as it was, and `calljournal rebuild` goes on") from None


async def _rebuild(choice: Choice) -> bool:
    from engine.cli.database import opened
    from engine.cli.output import Output, progress_bar
    from engine.cli.reporting import print_report
    from projections.rebuild import rebuild

    output = Output(choice)
    async with opened(choice.url) as log:
        with progress_bar("rebuild", "positions") as progress:
            report = await rebuild(log, progress=progress)
    print_report(output, report, "tool_call_attempts was made anew")
    return report.ok


@click.command()
@taking("database", "as_json")
def migrate(choice: Choice) -> int:
    """Bring the tables up to this release.

    Prints the revisions applied.

    Needed on Postgres, once per deployment; SQLite files are brought up to date when they are opened.
    """
    anyio.run(_migrate, choice)
    return DONE


async def _migrate(choice: Choice) -> None:
    from engine.cli.database import migrated
    from engine.cli.output import Output
    from events.opening import shown_url

    output = Output(choice)
    applied = await migrated(choice.url)
    if output.as_json:
        output.record({"applied": applied})
    elif applied:
        output.console.print(f"{shown_url(choice.url)}: applied {', '.join(applied)}")
    else:
        output.console.print(f"{shown_url(choice.url)}: up to date, nothing to apply")
    output.flush()
