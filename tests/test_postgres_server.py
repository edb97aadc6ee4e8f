"""The Postgres that tests run on goes away with whoever started it, even if that is killed."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys

import pytest

from tests.shape import ROOT

STARTS_ONE = """
from tests.postgres_server import postgres_server
with postgres_server(fsync=False) as server:
    print(server.pid, flush=True)
    input()
"""


@pytest.mark.postgres
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent died")
def test_a_killed_run_leaves_no_server_behind() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STARTS_ONE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as run:
        assert run.stdout is not None
        server = os.pidfd_open(int(run.stdout.readline()))
        run.send_signal(signal.SIGKILL)
    try:
        assert select.select([server], [], [], 30)[0] == [server]
    finally:
        os.close(server)
