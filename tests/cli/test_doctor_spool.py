"""``doctor`` on a journal that was away: what waits on this machine, and what was put aside."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from engine.cli.finding import Finding
from engine.cli.spool import check_spool
from engine.parked import PARKED, park
from engine.settings import Settings
from engine.spool_place import spool_place
from tests.cli.command import Called
from tests.engine.losing import losable_sqlite, on_losable, reader
from tests.engine.staging import call, events_of
from tests.engine.test_draining import SHORT
from tests.events.appends import proposed

__all__ = ()


def said(called: Called, url: str) -> dict[str, tuple[str, str]]:
    done = called("doctor", "--database", url)
    assert done.code == 0
    lines = {line["subject"]: (line["level"], line["message"]) for line in done.lines}
    return {subject: line for subject, line in lines.items() if subject in ("spool", "parked")}


@pytest.fixture
def url(called: Called, tmp_path: Path) -> str:
    assert called("migrate", "--database", f"sqlite:///{tmp_path}/journal.db").code == 0
    return f"sqlite:///{tmp_path}/journal.db"


def test_an_empty_spool_is_well(called: Called, url: str) -> None:
    level, message = said(called, url)["spool"]
    assert (level, "nothing waits" in message) == ("ok", True)


def test_what_waits_is_a_warning_until_it_is_written(called: Called, url: str) -> None:
    async def answer() -> str:
        return "done"

    async def lose() -> None:
        with losable_sqlite(url) as journal:
            async with on_losable(journal, Settings(limits=SHORT), reader(answer)) as engine:
                journal.go_away()
                await events_of(engine, call())
                held.extend(check_spool(url))
            journal.come_back()

    held: list[Finding] = []
    anyio.run(lose)
    assert [(finding.level, finding.subject) for finding in held] == [("warning", "spool")]
    assert "1 call of running engines" in held[0].message
    level, message = said(called, url)["spool"]
    assert level == "warning"
    assert "1 call of engines that are gone" in message
    assert called("reconcile", "--database", url).code == 0
    assert said(called, url)["spool"][0] == "ok"
    assert [line["type"] for line in called("events", "--database", url, "--all-tenants").lines] == [
        "proposed",
        "executed",
    ]


def test_what_was_put_aside_is_a_warning(called: Called, url: str) -> None:
    folder = spool_place(url, Settings())
    assert folder is not None
    folder.mkdir(parents=True)
    park(folder, proposed("c1"), None, "the key is too long")
    level, message = said(called, url)["parked"]
    assert level == "warning"
    assert "1 call that ran" in message
    (folder / PARKED).unlink()
    assert "parked" not in said(called, url)
