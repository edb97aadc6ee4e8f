"""Queries: they change nothing, end in time, and bring back no more than there is room for, each value as it is."""

from __future__ import annotations

import tracemalloc
from typing import Any

import anyio
import asyncpg
import pytest

from engine.sql.allowance import Allowance
from engine.sql.connecting import linked
from engine.sql.dsn import Dsn
from engine.sql.host_policy import Place
from engine.sql.session import begin
from engine.sql.watch import Watch
from events.bridge import open_bridge
from tests.engine.sql.calls_of_postgres import (
    calling_postgres,
    error_text,
    nobody_left,
    rows_of,
    sessions,
    sleeping,
)
from tests.postgres_server import PostgresServer

pytestmark = [pytest.mark.anyio, pytest.mark.postgres]

_TABLE = """
CREATE TABLE item (id serial PRIMARY KEY, name text);
INSERT INTO item (name) SELECT 'n' || g FROM generate_series(1, 3) g;
CREATE FUNCTION adds() RETURNS int LANGUAGE sql AS 'INSERT INTO item (name) VALUES (''f'') RETURNING id';
CREATE PROCEDURE ends() LANGUAGE plpgsql AS 'BEGIN COMMIT; INSERT INTO item (name) VALUES (''p''); END';
"""
_STATE = "SELECT count(*), (SELECT last_value FROM item_id_seq) FROM item"


@pytest.fixture
def url(postgres: PostgresServer, empty_postgres_url: str) -> str:
    postgres.execute_on(empty_postgres_url, _TABLE)
    return empty_postgres_url


_ATTEMPTS = [
    ("INSERT INTO item (name) VALUES ('x')", "INSERT is not run by this action"),
    ("UPDATE item SET name = 'x'", "UPDATE is not run"),
    ("CREATE TABLE t (a int)", "CREATE is not run"),
    ("DROP TABLE item", "DROP is not run"),
    ("CALL ends()", "CALL is not run"),
    ("DO $$ BEGIN DELETE FROM item; END $$", "DO is not run"),
    ("SET TRANSACTION READ WRITE", "SET is not run"),
    ("BEGIN READ WRITE", "BEGIN is not run"),
    ("COPY item TO PROGRAM 'cat'", "COPY is not run"),
    ("COPY item TO '/tmp/item'", "COPY is not run"),
    ("COMMIT; DROP TABLE item", "COMMIT is not run"),
    ("SELECT 1; COMMIT; DROP TABLE item", "must be one statement"),
    ("SELECT 1; SELECT 2", "must be one statement"),
    ("/* */ SELECT 1; -- \n DELETE FROM item", "must be one statement"),
    ("WITH a AS (INSERT INTO item (name) VALUES ('x') RETURNING id) SELECT * FROM a", "read-only transaction"),
    ("WITH a AS (SELECT 1) DELETE FROM item", "read-only transaction"),
    ("SELECT * INTO other FROM item", "read-only transaction"),
    ("SELECT * FROM item FOR UPDATE", "read-only transaction"),
    ("SELECT nextval('item_id_seq')", "read-only transaction"),
    ("SELECT setval('item_id_seq', 99)", "read-only transaction"),
    ("SELECT adds()", "read-only transaction"),
    ("SELECT query_to_xml('DELETE FROM item RETURNING id', true, true, '')", "read-only|non-volatile|not allowed"),
    ("EXPLAIN ANALYZE DELETE FROM item", "read-only transaction"),
    ("SELECT set_config('transaction_read_only', 'off', false)", "before any query"),
    (
        "WITH a AS (SELECT set_config('transaction_read_only', 'off', true)) SELECT adds() FROM a",
        "read-only|before any",
    ),
]


async def test_no_query_changes_anything(postgres: PostgresServer, url: str) -> None:
    async with calling_postgres(url) as call:
        before = rows_of(await call("execute_sql", _STATE))
        for sql, said in _ATTEMPTS:
            text = error_text(await call("execute_sql", sql))
            assert any(each in text for each in said.split("|")), (sql, text)
            if "read-only transaction" in text:
                assert "postgres_write_sql" in text
        # What a server allows while reading is undone.
        for sql in (
            "EXPLAIN (ANALYZE) CREATE TABLE t AS SELECT 1",
            "SELECT set_config('default_transaction_read_only', 'off', false)",
            "SELECT set_config('search_path', 'elsewhere', false)",
            "SELECT lo_create(77)",
            "SELECT pg_advisory_lock(77)",
            "SELECT pg_notify('a', 'b')",
        ):
            await call("execute_sql", sql)
        assert rows_of(await call("execute_sql", _STATE)) == before
        assert rows_of(await call("execute_sql", "SELECT count(*) FROM pg_largeobject_metadata")) == [[0]]
        assert rows_of(await call("execute_sql", "SELECT to_regclass('t')")) == [[None]]
        assert rows_of(await call("execute_sql", "SELECT pg_try_advisory_lock(77)")) == [[True]]
        assert rows_of(await call("execute_sql", "SELECT current_setting('search_path')")) == [['"$user", public']]
    await nobody_left(postgres, url)


async def test_should_a_query_end_its_transaction_the_next_one_only_reads_too(url: str) -> None:
    allowance = Allowance.of({}, None, 0, 40.0)

    async def beyond() -> None:
        async with linked(Place(Dsn.of(url), ("127.0.0.1",), inward=True), None, 5.0) as link:
            await begin(link, allowance, read_only=True)
            await link.connection.execute("COMMIT")
            with pytest.raises(asyncpg.ReadOnlySQLTransactionError):
                await link.connection.execute("DELETE FROM item")

    bridge = await open_bridge()
    try:
        await bridge.call(beyond)
    finally:
        await bridge.aclose()


async def test_every_kind_of_query_gives_its_rows(url: str) -> None:
    async with calling_postgres(url) as call:
        for sql, rows in (
            ("SELECT name FROM item ORDER BY id LIMIT 2", [["n1"], ["n2"]]),
            ("  -- first\n /* then /* nested */ */ (SELECT 1) UNION ALL (SELECT 2) ORDER BY 1;", [[1], [2]]),
            ("WITH a AS (SELECT 1 AS x) SELECT x FROM a;;", [[1]]),
            ("VALUES (1, 'a'), (2, 'b')", [[1, "a"], [2, "b"]]),
            ("TABLE item LIMIT 1", [[1, "n1"]]),
            ("SHOW server_encoding", [["UTF8"]]),
            ("SELECT 1 WHERE false", []),
            ('SELECT 1 AS a, 2 AS a, 3, 4, 5 AS "a#2"', [[1, 2, 3, 4, 5]]),
            ("SELECT ';' AS \"b;\", $$;$$, E'\\';'", [[";", ";", "';"]]),
        ):
            result = await call("execute_sql", sql)
            assert rows_of(result) == rows, sql
            assert result["truncated"] is False
        result = await call("execute_sql", "SELECT 1 AS a, 2 AS a, 3 AS b")
        assert result["response_data"]["column_names"] == ["a", "a#2", "b"]
        [[line]] = rows_of(await call("execute_sql", "EXPLAIN (COSTS OFF) SELECT 1"))
        assert line == "Result"
        assert "parameters" in error_text(await call("execute_sql", "SELECT $1::int"))
        assert 'relation "nothing" does not exist (at character 15)' in error_text(
            await call("execute_sql", "SELECT * FROM nothing")
        )


_VALUES: list[tuple[str, Any]] = [
    ("true", True),
    ("NULL::int", None),
    ("9007199254740993::int8", 9007199254740993),
    ("1.10::numeric", "1.10"),
    ("'NaN'::numeric", "NaN"),
    ("12345678901234567890.123456789::numeric", "12345678901234567890.123456789"),
    ("1.1::float4", 1.1),
    ("0.1::float8 + 0.2::float8", 0.30000000000000004),
    ("'NaN'::float8", "NaN"),
    ("'-Infinity'::float4", "-Infinity"),
    ("'\\x00ff'::bytea", "AP8="),
    ("'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'::uuid", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    ("'2024-05-01 12:00:00.5+02'::timestamptz", "2024-05-01T10:00:00.500000Z"),
    ("'2024-05-01 12:00'::timestamp", "2024-05-01T12:00:00"),
    ("'infinity'::timestamptz", "infinity"),
    ("'0044-03-15 BC'::date", "-0043-03-15"),
    ("'10000-01-01'::date", "+10000-01-01"),
    ("'24:00'::time", "24:00:00"),
    ("'12:00+05:30'::timetz", "12:00:00+05:30"),
    ("'1 year 2 mons 3 days 04:05:06.5'::interval", "P1Y2M3DT4H5M6.5S"),
    ("'-1 mon +2 days'::interval", "P-1M2D"),
    ("int4range(1, 5)", "[1,5)"),
    ("'empty'::numrange", "empty"),
    ("tstzrange('2024-05-01 00:00+00', NULL)", "[2024-05-01T00:00:00Z,)"),
    ("'{[1,3),[5,7)}'::int4multirange", ["[1,3)", "[5,7)"]),
    ("ARRAY[[1.5, NULL], [2, 'NaN']]::numeric[]", [["1.5", None], ["2", "NaN"]]),
    ("ARRAY['2024-05-01'::date]", ["2024-05-01"]),
    ("'{\"a\": [1.10, 123456789012345678901234567890.5, 1e400], \"b\": null}'::jsonb",
     {"a": [1.1, "123456789012345678901234567890.5", 10**400], "b": None}),
    ("'[1e400, 1e-400]'::json", ["1e400", "1e-400"]),
    ("'\"text\"'::json", "text"),
    ("ARRAY['{\"a\": 1}'::jsonb]", [{"a": 1}]),
    ("(repeat('[', 300) || repeat(']', 300))::json", "[" * 300 + "]" * 300),
    ("ROW(1, 'x', '2024-05-01'::date)", [1, "x", "2024-05-01"]),
    ("ROW(1, 'sad', '{\"a\": 1}')::pair", {"a": 1, "b": "sad", "c": {"a": 1}}),
    ("ARRAY['sad', 'ok']::mood[]", ["sad", "ok"]),
    ("'2024-05-01 00:00+00'::moment", "2024-05-01T00:00:00Z"),
    ("'10.0.0.0/8'::cidr", "10.0.0.0/8"),
    ("'fe80::1'::inet", "fe80::1"),
    ("B'00101'", "00101"),
    ("'1.50'::money", "$1.50"),
    ("'a'::\"char\"", "a"),
    ("point(1, 2)", [1.0, 2.0]),
    ("'((0,0),(1,1))'::path", [[0.0, 0.0], [1.0, 1.0]]),
    ("'16/B374D848'::pg_lsn", "16/B374D848"),
    ("'(0,7)'::tid", "(0,7)"),
    ("'pg_class'::regclass", "pg_class"),
    ("'a:1 b:2'::tsvector", "'a':1 'b':2"),
    ("'a=>1'::hstore", '"a"=>"1"'),
    ("'Mixed'::citext", "Mixed"),
    ("pg_sleep(0)", None),
    ("E'tab\\t\"\\\\ \U0001f600'", 'tab\t"\\ \U0001f600'),
]  # fmt: skip

_TYPES = """
CREATE EXTENSION hstore; CREATE EXTENSION citext;
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TYPE pair AS (a int, b mood, c jsonb);
CREATE DOMAIN moment AS timestamptz;
"""


async def test_values_have_a_form_that_is_exact(postgres: PostgresServer, empty_postgres_url: str) -> None:
    postgres.execute_on(empty_postgres_url, _TYPES, "ALTER ROLE postgres SET intervalstyle = 'sql_standard'")
    async with calling_postgres(empty_postgres_url) as call:
        listed = ", ".join(sql for sql, _ in _VALUES)
        [row] = rows_of(await call("execute_sql", f"SELECT {listed}"))
        for (sql, expected), value in zip(_VALUES, row, strict=True):
            assert value == expected, sql
            assert type(value) is type(expected), sql
        unreadable = await call("execute_sql", "SELECT t FROM pg_type t LIMIT 1")
        assert "cast it to text" in error_text(unreadable)


async def test_a_result_ends_at_its_caps_and_says_so(url: str) -> None:
    many = "SELECT repeat('x', {}), generate_series(1, {}) AS g"
    async with calling_postgres(url) as call:
        result: Any = None
        for sql, asked, rows, truncated in (
            (many.format(1, 1000), None, 1000, False),
            (many.format(1, 1001), None, 1000, True),
            (many.format(1, 100_000_000), None, 1000, True),
            (many.format(1, 100), 7, 7, True),
            (many.format(1, 7), 7, 7, False),
            (many.format(1000, 1000), None, 256, True),
        ):
            result = await call("execute_sql", sql, **({} if asked is None else {"max_rows": asked}))
            assert [len(rows_of(result)), result["truncated"]] == [rows, truncated], sql
        assert "nearly 262,144 bytes" in result["note"]
        result = await call("execute_sql", many.format(300_000, 3))
        assert [rows_of(result), result["truncated"]] == [[], True]
        assert "first row" in result["note"]
    async with calling_postgres(url, max_rows=5, max_bytes=2000) as call:
        assert len(rows_of(await call("execute_sql", many.format(1, 100), max_rows=50))) == 5
        assert len(rows_of(await call("execute_sql", many.format(900, 100)))) == 2


async def test_huge_rows_do_not_fill_the_memory(postgres: PostgresServer, url: str) -> None:
    async with calling_postgres(url) as call:
        await call("execute_sql", "SELECT 1")
        tracemalloc.start()
        try:
            text = error_text(await call("execute_sql", "SELECT repeat('x', 150000000)"))
            later = await call("execute_sql", "SELECT repeat('x', 9 + g / 5 * 150000000) FROM generate_series(1, 9) g")
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert "a row is too large" in text
    assert [len(rows_of(later)), later["truncated"]] == [1, True]
    assert "too large" in later["note"]
    assert peak < 64 * 1024 * 1024
    await nobody_left(postgres, url)


async def test_a_statement_ends_at_its_timeout(postgres: PostgresServer, url: str) -> None:
    slow = "SELECT pg_sleep(0.3) FROM generate_series(1, 1000)"
    # A statement may put the server's own clock out of action; ours goes on.
    disarms = (
        "SELECT CASE g WHEN 1 THEN set_config('statement_timeout', '0', true) ELSE pg_sleep(60)::text END"
        " FROM generate_series(1, 2) g"
    )
    with anyio.fail_after(30):
        async with calling_postgres(url, timeout=1) as call:
            for sql in ("SELECT pg_sleep(60)", slow):
                assert "took longer than 1 s" in error_text(await call("execute_sql", sql))
        async with calling_postgres(url) as call:
            assert "took longer than 1" in error_text(await call("execute_sql", disarms, seconds=3.0))
            assert "took longer than" in error_text(await call("execute_sql", "SELECT pg_sleep(60)", seconds=1.0))
            assert "no time is left" in error_text(await call("execute_sql", "SELECT 1", seconds=-1.0))
    await nobody_left(postgres, url)


async def test_a_cancelled_call_cancels_its_statement(postgres: PostgresServer, url: str) -> None:
    async with calling_postgres(url) as call, anyio.create_task_group() as tasks:
        for number in range(6):
            tasks.start_soon(call, "execute_sql", f"SELECT {number}, pg_sleep(60)")
        # Of six calls four have a connection.
        await sleeping(postgres, url, 4)
        assert len(sessions(postgres, url)) == 4
        tasks.cancel_scope.cancel()
    await nobody_left(postgres, url)


def test_a_watch_counts_anew_for_each_request() -> None:
    watch = Watch(100, encrypted=False)
    watch.sees(b"R\0\0\0\x08\0\0\0\0")
    for _ in range(3):
        watch.begin()
        assert watch.sees(b"x" * 100)
    assert not watch.sees(b"x")
    assert watch.too_large
