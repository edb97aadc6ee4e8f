"""What is built can be installed, holds what it should, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from tests.shape import LAYERS, ROOT

pytestmark = pytest.mark.soak

PIP = (sys.executable, "-m", "pip", "--quiet", "--no-input", "--disable-pip-version-check")
# Nothing is fetched: what builds and what is needed are in this environment already.
OFFLINE = ("--no-deps", "--no-build-isolation", "--no-index")


def run(*command: str | Path, cwd: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PIP_"))}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, f"{command}: {done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(*PIP, "wheel", *OFFLINE, "--wheel-dir", folder, ROOT, cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """A fresh environment that sees this one's packages, but not how this one has calljournal installed."""
    folder = tmp_path / "environment"
    venv.create(folder, symlinks=True, with_pip=False)
    variables = {"base": str(folder), "platbase": str(folder)}
    own = Path(sysconfig.get_path("purelib", scheme="venv", vars=variables))
    # A folder named in a .pth file is searched, but its own .pth files (an editable install) are not read.
    (own / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder


def install(environment: Path, *what: str | Path) -> None:
    python = environment / "bin" / "python"
    run(*PIP, "--python", python, "install", *OFFLINE, "--ignore-installed", *what, cwd=environment)


def check_installed(environment: Path, expected: Path) -> None:
    """The packages come from where they should, and the command answers, from a folder that has none of our files."""
    empty = environment / "empty"
    empty.mkdir()
    script = "import engine, events, projections; print(engine.__file__)"
    assert Path(run(environment / "bin" / "python", "-c", script, cwd=empty).strip()).is_relative_to(expected)
    assert "Usage: calljournal" in run(environment / "bin" / "calljournal", "--help", cwd=empty)


def test_the_wheel_holds_the_three_packages_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    ours = {str(path.relative_to(ROOT)) for package in LAYERS for path in (ROOT / package).rglob("*") if path.is_file()}
    assert {name for name in ours if "__pycache__" not in name} - set(names) == set()
    assert {f"{package}/py.typed" for package in LAYERS} - set(names) == set()
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == set(LAYERS)
    assert any(name.startswith("events/migrations/versions/") for name in names)
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    assert [name for name in names if name.endswith(".pyc")] == []


def test_the_wheel_works_where_it_is_installed(wheel: Path, environment: Path) -> None:
    install(environment, wheel)
    check_installed(environment, environment)


def test_an_editable_install_works(environment: Path) -> None:
    install(environment, "--editable", ROOT)
    check_installed(environment, ROOT)
