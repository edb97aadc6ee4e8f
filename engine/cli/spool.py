"""What ``doctor`` says of the journal's spool on this machine: what waits in it, and what was put aside."""

from __future__ import annotations

from collections.abc import Iterator

from engine.cli.finding import Finding
from engine.parked import PARKED
from engine.settings import Settings
from engine.spool_place import spool_place
from engine.spool_report import SpoolReport, inspect_spool

__all__ = ("check_spool",)


def check_spool(url: str) -> Iterator[Finding]:
    """Yield what there is to say of a journal's spool, where it is by default. Changes nothing."""
    folder = spool_place(url, Settings())
    if folder is None:
        return
    try:
        report = inspect_spool(folder)
    except OSError as error:
        yield Finding("fault", "spool", f"{folder} cannot be read ({error.strerror})", "make it readable to this user")
        return
    yield _waiting(report)
    if report.parked:
        text = f"{_calls(report.parked)} that ran while the journal was away, and that it then did not take"
        yield Finding("warning", "parked", text, f"read {folder / PARKED}, and take it away when that is settled")
    if report.damaged:
        text = f"{report.damaged} files in {folder} could not be read whole"
        yield Finding("warning", "spool", text, "check the disk; what could be read is in the journal")


def _waiting(report: SpoolReport) -> Finding:
    waiting = f"in {report.folder}, the oldest for {_duration(report.oldest)}"
    if report.left:
        text = f"{_calls(report.left)} of engines that are gone wait {waiting}"
        return Finding("warning", "spool", text, "open the journal on this machine, e.g. by `calljournal reconcile`")
    if report.held:
        text = f"{_calls(report.held)} of running engines wait {waiting}"
        return Finding("warning", "spool", text, "they are written once the journal can be; see why it cannot")
    return Finding("ok", "spool", f"nothing waits in {report.folder}")


def _calls(count: int) -> str:
    return "1 call" if count == 1 else f"{count} calls"


def _duration(seconds: float) -> str:
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
