"""Event ids: new ones in every thread and process, in the order of time."""

from __future__ import annotations

import subprocess
import sys
from uuid import RFC_4122, UUID

from events.keys import new_id

__all__ = ()

_FORK = """
import os, sys
from events.keys import new_id
new_id()
read, write = os.pipe()
if os.fork() == 0:
    os.write(write, new_id().encode())
    os._exit(0)
own = new_id()
os.wait()
print(own[14:], os.read(read, 36).decode()[14:])
"""


def test_an_id_is_a_uuid7() -> None:
    ids = [new_id() for _ in range(1000)]
    assert len(set(ids)) == 1000
    assert {(UUID(each).version, UUID(each).variant) for each in ids} == {(7, RFC_4122)}
    assert all(str(UUID(each)) == each for each in ids)
    moments = [each[:13] for each in ids]
    assert moments == sorted(moments)


def test_a_forked_process_has_ids_of_its_own() -> None:
    told = subprocess.run([sys.executable, "-c", _FORK], check=True, capture_output=True, text=True).stdout.split()
    assert len(told) == 2
    assert told[0] != told[1]


def test_who_seeds_python_s_own_source_repeats_no_id() -> None:
    script = "import random; random.seed(1); from events.keys import new_id; print(new_id()[14:])"
    told = {subprocess.run([sys.executable, "-c", script], check=True, capture_output=True).stdout for _ in range(2)}
    assert len(told) == 2
