"""The core is quick to import: what is heavy is loaded where it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.shape import ROOT

HEAVY = (
    "aiosqlite",
    "alembic",
    "asyncpg",
    "click",
    "cryptography",
    "fastmcp",
    "httpcore",
    "httpx",
    "httpx2",
    "jsonschema_rs",
    "mcp",
    "opentelemetry.sdk",
    "psycopg",
    "pydantic",
    "rich",
    "sqlalchemy",
    "starlette",
    "trio",
    "uvicorn",
    "uvloop",
)


def loaded_by(script: str) -> set[str]:
    """Return what a script prints, word by word, run by a Python that has loaded nothing of ours."""
    # -S would hide the installed packages, -P keeps the working folder from adding any.
    run = subprocess.run(
        [sys.executable, "-P", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{script}"],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert run.returncode == 0, run.stderr
    return set(run.stdout.split())


@pytest.mark.parametrize("package", ["events", "projections", "engine"])
def test_importing_loads_nothing_heavy(package: str) -> None:
    loaded = loaded_by(f"import sys, {package}; print(*sorted(sys.modules))")
    assert package in loaded
    assert sorted(name for name in HEAVY if name in loaded) == []
