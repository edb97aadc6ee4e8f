"""Every path, struck at every await: killed there, or cancelled. No point is written down; each is found by counting.

See docs/testing.md, The fault matrix.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator

import pytest

from tests.crash.fault_forks import Forks, fork_server
from tests.crash.fault_job import Job
from tests.crash.fault_matrix import struck_everywhere
from tests.crash.fault_paths import PATHS
from tests.matrix_plugin import MATRIX

__all__ = ()

NAMES = [path.name for path in PATHS]
LOOPS = ("asyncio", "trio", "uvloop")
IN_SHORT = "approved"


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    with fork_server() as server:
        yield server


@pytest.fixture
def folder() -> Iterator[str]:
    """A folder in memory, where there is one: what is on disk is not at stake when a process dies."""
    memory = "/dev/shm"
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as place:
        yield place


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def store(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def url(store: str, folder: str, request: pytest.FixtureRequest) -> str:
    return f"sqlite:///{folder}/journal.db" if store == "sqlite" else str(request.getfixturevalue("postgres_url"))


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("name", NAMES)
def test_struck_at_every_await(
    forks: Forks, name: str, store: str, loop: str, url: str, folder: str, pytestconfig: pytest.Config
) -> None:
    job = Job(task="walk", path=name, backend=loop, url=url, folder=folder)
    pytestconfig.stash[MATRIX].append(struck_everywhere(forks, job, store))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("loop", LOOPS[:2])
def test_one_path_in_short(forks: Forks, loop: str, folder: str, pytestconfig: pytest.Config) -> None:
    job = Job(task="walk", path=IN_SHORT, backend=loop, url=f"sqlite:///{folder}/journal.db", folder=folder)
    pytestconfig.stash[MATRIX].append(struck_everywhere(forks, job, "sqlite"))
