"""Connection strings: read strictly, by us alone; nothing of them in an error."""

from __future__ import annotations

import pytest

from engine.sql.dsn import Dsn
from engine.sql.errors import SqlError

_PLAIN = Dsn(host="db.example", port=5432, user="app", password="pa ss", database="shop")

_TAKEN: list[tuple[str, dict[str, object]]] = [
    ("postgresql://app:pa%20ss@db.example/shop", {}),
    ("  postgres://app:pa%20ss@DB.Example.:5432/shop\n", {}),
    ("postgresql+asyncpg://app:pa%20ss@db.example/shop", {}),
    ("host=db.example user=app password='pa ss' dbname=shop", {}),
    (r"host = db.example  port=5432 user=app password=pa\ ss database=shop", {}),
    ("postgresql://app:p@ss:w#rd@db.example/shop", {"password": "p@ss:w#rd"}),
    ("postgresql://app:a+b%2Fc@db.example/shop", {"password": "a+b/c"}),
    (r"host=db.example user=app password='it\'s' dbname=shop", {"password": "it's"}),
    ("postgresql://app@db.example", {"password": "", "database": "app"}),
    ("postgresql://db.example/shop?user=app&password=pa%20ss", {}),
    ("postgresql://app:pa%20ss@[2606:4700::1]:6432/shop", {"host": "2606:4700::1", "port": 6432}),
    ("postgresql://app:pa%20ss@db.example/shop?sslmode=require", {"sslmode": "require"}),
    ("postgresql://app:pa%20ss@db.example/shop?channel_binding=require&sslmode=require", {"sslmode": "verify-full"}),
    ("postgresql://app:pa%20ss@db.example/shop?sslrootcert=system", {"sslmode": "verify-full"}),
    ("postgresql://app:pa%20ss@db.example/shop?connect_timeout=3&gssencmode=disable", {"connect_timeout": 3}),
    ("postgresql://app:pa%20ss@db.example/shop?application_name=x&target_session_attrs=any", {"application_name": "x"}),
]  # fmt: skip

_SECRET = "tops3cret"
_URL = f"postgresql://app:{_SECRET}@db.example/shop"

_REFUSED = [
    ("", "missing"),
    ("mysql://app@db.example/shop", "begin with postgresql"),
    # Files, programs and settings of the machine, under every name that libpq has for them.
    *(
        (f"{_URL}?{name}={value}", f"'{name}'")
        for name, value in (
            ("service", "prod"), ("servicefile", "/etc/x"), ("passfile", "/root/.pgpass"), ("sslcert", "/a"),
            ("sslkey", "/a"), ("sslpassword", "x"), ("sslcrl", "/a"), ("sslcrldir", "/a"), ("hostaddr", "127.0.0.1"),
            ("options", "-c%20search_path=x"), ("krbsrvname", "x"), ("requirepeer", "x"), ("replication", "1"),
            ("client_encoding", "x"), ("gsslib", "gssapi"), ("load_balance_hosts", "random"),
        )
    ),
    (f"{_URL}?sslrootcert=/etc/passwd", "sslrootcert only system"),
    (f"{_URL}?target_session_attrs=primary", "target_session_attrs only any"),
    (f"{_URL}?sslnegotiation=direct", "sslnegotiation only postgres"),
    (f"{_URL}?gssencmode=require", "gssencmode only"),
    (f"{_URL}?sslmode=none", "sslmode must be one of"),
    (f"{_URL}?connect_timeout=-1", "whole number"),
    (f"{_URL}?sslmode", "without a value"),
    (f"{_URL}?search_path=x", "an option that is not known"),
    (f"{_URL}?host=other.example", "host twice"),
    (f"{_URL}?sslmode=require&sslmode=disable", "sslmode twice"),
    (f"{_URL}?dbname=postgres", "dbname twice"),
    # Sockets and lists in the place of a host.
    (f"postgresql://app:{_SECRET}@/shop", "one host"),
    (f"postgresql://app:{_SECRET}@/shop?host=/var/run/postgresql", "one host"),
    (f"postgresql://app:{_SECRET}@%2Fvar%2Frun/shop", "plain name"),
    (f"postgresql://app:{_SECRET}@a.example,127.0.0.1/shop", "one host"),
    (f"postgresql://app:{_SECRET}@a.example:5432,127.0.0.1:5432/shop", "IPv6 in brackets|port"),
    (f"host=/tmp user=app password={_SECRET}", "one host"),
    (f"host=@abstract user=app password={_SECRET}", "one host"),
    (f"host=a.example,b.example user=app password={_SECRET}", "one host"),
    (f"user=app password={_SECRET} dbname=shop", "one host"),
    (f"service=prod user=app password={_SECRET}", "'service'"),
    (f"host=db.example password={_SECRET}", "name a user"),
    (f"postgresql://:{_SECRET}@db.example/shop", "name a user"),
    (f"postgresql://app:{_SECRET}@::1/shop", "one host"),
    *((f"postgresql://app:{_SECRET}@db.example:{port}/shop", "port") for port in ("0", "65536", "-1", "5432x", "٥")),
    # What would end one setting and begin the next in the message that opens a session.
    (f"postgresql://app%00options%00-cx:{_SECRET}@db.example/shop", "escape"),
    (f"{_URL}%00", "escape"),
    (f"{_URL}?application_name=a%0ab", "escape"),
    (f"postgresql://app:%ff%fe{_SECRET}@db.example/shop", "escape"),
    (f"{_URL}\x00", "one line"),
    (f"{_URL}\nhost=x", "one line"),
    (f"{_URL}\ud800", "one line"),
    (_URL + "x" * 5000, "one line"),
    (f"host=db.example user=app password='{_SECRET}", "must be a postgresql:// URL"),
    (f"host=db.example user=app {_SECRET}", "must be a postgresql:// URL"),
    # A password whose own characters end it: what follows is a part of it, and not to be shown.
    (f"postgresql://app:x?{_SECRET}=y@db.example/shop", "an option that is not known"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "differing"), _TAKEN)
def test_what_is_taken(text: str, differing: dict[str, object]) -> None:
    dsn = Dsn.of(text)
    seen = {name: getattr(dsn, name) for name in Dsn.__struct_fields__}
    assert seen == {name: getattr(_PLAIN, name) for name in Dsn.__struct_fields__} | differing
    for shown in (repr(dsn), dsn.masked()):
        assert dsn.user not in shown.replace("Dsn", "") or len(dsn.user) < 4
        assert not dsn.password or dsn.password not in shown


@pytest.mark.parametrize(("text", "said"), _REFUSED)
def test_what_reaches_files_sockets_or_more_than_one_host_is_refused(text: str, said: str) -> None:
    with pytest.raises(SqlError, match=said) as refused:
        Dsn.of(text)
    assert _SECRET not in str(refused.value)
    assert "db.example" not in str(refused.value)
