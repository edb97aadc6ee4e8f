"""Connections to the databases of rows; on asyncio's side of the bridge."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import asyncpg
from anyio.lowlevel import current_token

from engine.sql.errors import SqlError
from engine.sql.host_policy import Place
from engine.sql.pinned_loop import PinnedLoop
from engine.sql.values import read_exactly
from engine.sql.watch import Watch
from events.bridge import to_the_end

__all__ = ("Link", "linked")

LARGEST: Final = 16 * 1024 * 1024
_GOODBYE: Final = 3.0
_SAID: Final = {
    "28P01": "the server does not accept the user or the password",
    "28000": "the server does not let this user in from here, or not without TLS",
    "3D000": "there is no such database on the server",
    "53300": "the server has no connection left",
    "57P03": "the server is starting up, or shutting down",
    "42501": "the user may not connect to this database",
}


class Link:
    """A connection for one call."""

    def __init__(self, connection: asyncpg.Connection, watch: Watch) -> None:
        self.connection = connection
        self.watch = watch


@asynccontextmanager
async def linked(place: Place, authorities: ssl.SSLContext | None, seconds: float) -> AsyncIterator[Link]:
    """Connect, and close the connection at the end; a statement under way is cancelled on the server first.

    :param authorities: whose certificates are trusted where the string says verify-full; None: the public ones'
    :param seconds: to connect in
    :raises SqlError: if there is no connection
    """
    try:
        with anyio.fail_after(seconds):
            link = await _link(place, authorities)
    except TimeoutError:
        raise SqlError(f"the server does not answer within {seconds:.3g} s") from None
    try:
        yield link
    finally:
        # Shielded besides: what is done already is not to be lost with the goodbye.
        with anyio.CancelScope(shield=True):
            await to_the_end(_closed(link.connection))


async def _link(place: Place, authorities: ssl.SSLContext | None) -> Link:
    mode = place.dsn.sslmode or ("prefer" if place.inward else "require")
    if mode == "disable":
        return await _attempt(place, False, Watch(LARGEST, encrypted=False))
    watch = Watch(LARGEST, encrypted=True)
    try:
        return await _attempt(place, _context(mode, authorities), watch)
    except SqlError:
        if not watch.refused_tls or mode not in ("prefer", "allow"):
            raise
    return await _attempt(place, False, Watch(LARGEST, encrypted=False))


def _context(mode: str, authorities: ssl.SSLContext | None) -> ssl.SSLContext:
    if mode in ("verify-full", "verify-ca"):
        from engine.net.authorities import public_authorities

        return authorities or public_authorities()
    # As libpq has it: encrypted, with whoever answers. Made by hand, for the driver would look for files.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def _attempt(place: Place, secured: ssl.SSLContext | bool, watch: Watch) -> Link:
    dsn = place.dsn
    loop: Any = PinnedLoop(current_token().native_token, place, watch)
    # What the driver takes and its stubs do not know of.
    unlisted: dict[str, Any] = {"target_session_attrs": "any", "timeout": None}
    try:
        # Everything is said outright: what is not, the driver takes from the environment and from files.
        connection = await asyncpg.connect(
            host=dsn.host,
            port=dsn.port,
            user=dsn.user,
            password=dsn.password,
            database=dsn.database,
            ssl=secured,
            direct_tls=False,
            krbsrvname="postgres",
            gsslib="gssapi",
            server_settings={"application_name": dsn.application_name},
            statement_cache_size=0,
            loop=loop,
            **unlisted,
        )
    except OSError as error:
        raise SqlError(_refused(error, watch)) from error
    except Exception as error:
        # A server that is none makes the driver stumble over anything; whatever it is, there is no connection.
        raise SqlError(_failed(error, watch)) from error
    await read_exactly(connection)
    return Link(connection, watch)


def _refused(error: OSError, watch: Watch) -> str:
    if watch.problem is not None:
        return f"the server cannot be used: {watch.problem}"
    if watch.refused_tls:
        return "the server takes no TLS; with sslmode=prefer it is used without"
    if isinstance(error, ssl.SSLCertVerificationError):
        return "the server's certificate is not trusted, or is another host's"
    if isinstance(error, ssl.SSLError):
        return "there is no TLS with the server"
    return "nobody takes connections there, or the connection was lost"


def _failed(error: Exception, watch: Watch) -> str:
    if watch.problem is not None:
        return f"the server cannot be used: {watch.problem}"
    code = str(getattr(error, "sqlstate", "") or "")
    if code.startswith("08"):
        return "the connection was lost before the server let anybody in"
    if isinstance(error, asyncpg.PostgresError) and code:
        return _SAID.get(code, f"the server refuses the connection (SQLSTATE {code})")
    return "the server refuses the connection, or is no Postgres server"


async def _closed(connection: asyncpg.Connection) -> None:
    try:
        await connection.close(timeout=_GOODBYE)
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError):
        # It is closed without ceremony then: nobody is left to say it to.
        connection.terminate()
