"""Servers that a row's owner may name and nobody knows; certificates; the machine's own files and variables."""

from __future__ import annotations

from hashlib import md5
from pathlib import Path
from typing import Any

import anyio
import pytest

from engine.sql.connecting import linked
from engine.sql.dsn import Dsn
from engine.sql.errors import SqlError
from engine.sql.host_policy import Place
from events.bridge import open_bridge
from tests.engine.net.authority import made_authority
from tests.engine.net.names import Names
from tests.engine.sql.calls_of_postgres import calling_postgres, error_text, nobody_left, rows_of
from tests.engine.sql.strangers import Asked, authentication, serving, tls_before
from tests.postgres_server import PASSWORD, PostgresServer

pytestmark = pytest.mark.anyio

_PASSWORD = "tops3cret"


def _hashed_for_ever(asked: Asked) -> None:
    asked.says(authentication(10, b"SCRAM-SHA-256\0\0"))
    nonce = asked.message(b"p").rpartition(b"r=")[2]
    # In two pieces: what is looked for need not come at once.
    message = authentication(11, b"r=" + nonce + b"x,s=QSXCR+Q6sek8bf92,i=2147483647")
    asked.says(message[:20])
    asked.says(message[20:])
    asked.waits()


def _floods(asked: Asked) -> None:
    notice = b"N" + (200_000).to_bytes(4, "big") + b"x" * (200_000 - 4)
    while True:
        asked.says(notice)


def _refuses(code: bytes, text: bytes) -> Any:
    def script(asked: Asked) -> None:
        fields = b"SFATAL\0VFATAL\0C" + code + b"\0M" + text + b"\0\0"
        asked.says(b"E" + (4 + len(fields)).to_bytes(4, "big") + fields)
        asked.waits()

    return script


def _says(data: bytes) -> Any:
    def script(asked: Asked) -> None:
        asked.says(data)
        asked.waits()

    return script


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (_hashed_for_ever, "hashed in an unusual way"),
        (_says(authentication(7)), "Kerberos"),
        (_says(authentication(9)), "Kerberos"),
        (_says(authentication(3)), "in clear without TLS"),
        (_says(authentication(99)), "no Postgres server"),
        (_says(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "no Postgres server"),
        (_says(b"R\x7f\xff\xff\xff"), "no Postgres server"),
        (_floods, "sends more than"),
        (lambda asked: None, "the connection was lost"),
        (Asked.waits, "does not answer within"),
        (_refuses(b"28P01", b'password authentication failed for user "app"'), "does not accept the user"),
        (_refuses(b"28000", b'no pg_hba.conf entry for host "10.1.2.3", user "app"'), "does not let this user in"),
        (_refuses(b"3D000", b'database "shop" does not exist'), "no such database"),
        (_refuses(b"XX000", b"app@db.example: tops3cret"), "SQLSTATE XX000"),
    ],
)
async def test_a_server_that_is_none_ends_in_one_line_that_quotes_nothing(script: Any, said: str) -> None:
    with serving(script) as port, anyio.fail_after(15):
        url = f"postgresql://app:{_PASSWORD}@127.0.0.1:{port}/shop?sslmode=disable&connect_timeout=2"
        async with calling_postgres(url) as call:
            text = error_text(await call("execute_sql", "select 1"))
    assert said in text
    assert not any(secret in text for secret in (_PASSWORD, "app", "shop", "127.0.0.1", "10.1.2.3", str(port)))


def _poison(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every file and variable there that the driver looks at where it is left to itself."""
    for name in ("postgresql.crt", "postgresql.key", "root.crt", "root.crl"):
        (folder / ".postgresql").mkdir(exist_ok=True)
        (folder / ".postgresql" / name).write_text("none")
    (folder / ".pgpass").write_text("*:*:*:*:the-operator's\n")
    (folder / ".pgpass").chmod(0o600)
    (folder / ".pg_service.conf").write_text("[prod]\nhost=10.0.0.1\n")
    variables = {
        "HOME": folder,
        "PGHOST": "10.0.0.1",
        "PGPORT": "1",
        "PGUSER": "operator",
        "PGPASSWORD": "the-operator's",
        "PGDATABASE": "operators",
        "PGSERVICE": "prod",
        "PGPASSFILE": folder / ".pgpass",
        "PGSSLMODE": "verify-full",
        "PGSSLROOTCERT": folder / ".postgresql" / "root.crt",
        "PGSSLCERT": folder / ".postgresql" / "postgresql.crt",
        "PGSSLNEGOTIATION": "direct",
        "PGTARGETSESSIONATTRS": "standby",
        "PGOPTIONS": "-c search_path=operators",
        "PGGSSLIB": "none",
        "SSLKEYLOGFILE": folder / "keys",
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, str(value))


async def test_nothing_of_the_machine_is_used(
    postgres: PostgresServer, empty_postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _poison(tmp_path, monkeypatch)
    passwords: list[bytes] = []

    def asks(asked: Asked) -> None:
        asked.says(authentication(5, b"salt"))
        passwords.append(asked.message(b"p"))

    async with calling_postgres(empty_postgres_url.replace(f":{PASSWORD}", "")) as call:
        asked = "select current_user::text, inet_server_addr()::text, current_setting('search_path')"
        assert rows_of(await call("execute_sql", asked)) == [["postgres", "127.0.0.1/32", '"$user", public']]
    with serving(asks) as port:
        async with calling_postgres(f"postgresql://app@127.0.0.1:{port}/shop?sslmode=disable") as call:
            error_text(await call("execute_sql", "select 1"))
    inner = md5(b"" + b"app").hexdigest().encode()
    assert passwords == [b"md5" + md5(inner + b"salt").hexdigest().encode() + b"\0"]
    assert not (tmp_path / "keys").exists()


async def test_tls_goes_by_the_name_and_the_connection_by_the_checked_address(
    postgres: PostgresServer, empty_postgres_url: str, tmp_path: Path
) -> None:
    authority = made_authority(tmp_path, "db.test")
    with tls_before(postgres.port, authority.server) as port:
        url = empty_postgres_url.replace(f"127.0.0.1:{postgres.port}", f"db.test:{port}")
        for mode, name, said in (
            ("verify-full", "db.test", None),
            ("verify-ca", "db.test", None),
            ("verify-full", "other.test", "not trusted, or is another host's"),
            ("require", "other.test", None),
            ("prefer", "other.test", None),
            ("disable", "db.test", "lost"),
        ):
            # Whoever looks a second time is led elsewhere.
            names = Names(**{name: [["127.0.0.1"], ["10.0.0.1"]]})
            there = f"{url.replace('db.test', name)}?sslmode={mode}&connect_timeout=3"
            async with calling_postgres(there, resolver=names, tls=authority.client) as call:
                result = await call("execute_sql", "select pg_sleep(0)")
                if said is None:
                    assert rows_of(result) == [[None]], mode
                else:
                    assert said in error_text(result), mode
                assert names.asked == [name]
        # What cancels a statement goes the same way.
        async with calling_postgres(
            f"{url}?sslmode=verify-full", resolver=Names.local("db.test"), tls=authority.client
        ) as call:
            with anyio.move_on_after(1.0) as scope:
                await call("execute_sql", "select pg_sleep(30)")
            assert scope.cancelled_caught
        await nobody_left(postgres, empty_postgres_url)


async def test_a_server_without_tls_is_used_in_clear_only_where_that_is_said_or_inward(
    postgres: PostgresServer, empty_postgres_url: str, tmp_path: Path
) -> None:
    dsn = Dsn.of(empty_postgres_url)

    async def encrypted(inward: bool) -> bool:
        async with linked(Place(dsn, ("127.0.0.1",), inward), None, 5.0) as link:
            return bool(await link.connection.fetchval("select ssl from pg_stat_ssl where pid = pg_backend_pid()"))
        raise AssertionError

    bridge = await open_bridge()
    try:
        assert not await bridge.call(encrypted, True)
        with pytest.raises(SqlError, match="takes no TLS"):
            await bridge.call(encrypted, False)
    finally:
        await bridge.aclose()
    # What came in clear with the answer is not taken for what comes after it.
    with tls_before(postgres.port, made_authority(tmp_path, "db.test").server, b"E") as port:
        url = empty_postgres_url.replace(str(postgres.port), str(port))
        async with calling_postgres(f"{url}?sslmode=require") as call:
            assert "no Postgres server" in error_text(await call("execute_sql", "select 1"))


async def test_the_first_address_that_answers_is_used(postgres: PostgresServer, empty_postgres_url: str) -> None:
    url = empty_postgres_url.replace("127.0.0.1", "db.test")
    # Nobody listens at the first.
    names = Names(db_test=[["127.0.0.2", "127.0.0.1"]])
    async with calling_postgres(url, allow=("db.test",), resolver=names) as call:
        assert rows_of(await call("execute_sql", "select 1")) == [[1]]
