"""Changes: committed whole or not at all, counted, and never in the journal's own database."""

from __future__ import annotations

from typing import Any

import asyncpg
import pytest

from engine.starting import CHAINS
from events.opening import open_log
from projections.attempts import AttemptsProjection
from tests.engine.cancelling import CANCELLERS, cut_at
from tests.engine.sql.calls_of_postgres import calling_postgres, error_text, nobody_left, rows_of
from tests.postgres_pooler import stub_pooler
from tests.postgres_server import PostgresServer

pytestmark = [pytest.mark.anyio, pytest.mark.postgres]

_TABLE = """
CREATE TABLE item (id serial PRIMARY KEY, name text UNIQUE DEFERRABLE INITIALLY DEFERRED, n int CHECK (n > 0));
"""


@pytest.fixture
def url(postgres: PostgresServer, empty_postgres_url: str) -> str:
    postgres.execute_on(empty_postgres_url, _TABLE)
    return empty_postgres_url


async def test_changes_are_committed_and_counted(postgres: PostgresServer, url: str) -> None:
    async with calling_postgres(url) as call:
        for sql, count, rows in (
            ("INSERT INTO item (name, n) SELECT 'n' || g, g FROM generate_series(1, 1500) g", 1500, None),
            ("UPDATE item SET n = n + 1 WHERE n <= 3 RETURNING name, n", 3, [["n1", 2], ["n2", 3], ["n3", 4]]),
            ("WITH gone AS (DELETE FROM item WHERE n > 1000 RETURNING 1) SELECT count(*) FROM gone", 1, [[500]]),
            ("DELETE FROM item WHERE false", 0, None),
            ("CREATE TABLE other (a int)", None, None),
            ("DO $$ BEGIN INSERT INTO other VALUES (1); END $$", None, None),
            ("-- all of them\nMERGE INTO other USING (SELECT 1 AS x) s ON a = x WHEN MATCHED THEN DELETE", 1, None),
        ):
            result = await call("write_sql", sql)
            response = result["response_data"]
            assert response["row_count"] == count, sql
            said = "Query executed successfully" + ("." if count is None else f", {count} rows affected.")
            assert result["message"] == response["message"] == said
            assert (rows_of(result) if "data" in response else None) == rows, sql
        result = await call("write_sql", "UPDATE item SET n = n + 1 RETURNING id", max_rows=10)
        assert [len(rows_of(result)), result["truncated"], result["response_data"]["row_count"]] == [10, True, 1000]
        assert rows_of(
            await call("execute_sql", "SELECT count(*), max(n), (SELECT count(*) FROM other) FROM item")
        ) == [[1000, 1001, 0]]
    await nobody_left(postgres, url)


async def test_what_fails_leaves_nothing(postgres: PostgresServer, url: str) -> None:
    async with calling_postgres(url, timeout=1) as call:
        await call("write_sql", "INSERT INTO item (name, n) VALUES ('a', 1)")
        for sql, said in (
            ("INSERT INTO item (name, n) VALUES ('b', 1), ('c', 0)", 'violates check constraint "item_n_check"'),
            # This one is found out by the commit.
            ("INSERT INTO item (name, n) VALUES ('a', 2)", "Key (name)=(a) already exists"),
            ("INSERT INTO item (name, n) VALUES ('b', 1); DROP TABLE item", "must be one statement"),
            ("INSERT INTO item (name, n) SELECT 's' || pg_sleep(5), 1", "took longer than 1 s"),
            ("INSERT INTO item (name, n) VALUES ('b', 1) RETURNING repeat('x', 20000000)", "nothing was changed"),
            (
                "DO $$ BEGIN INSERT INTO item (name, n) VALUES ('b', 1); COMMIT; END $$",
                "invalid transaction",
            ),
            ("COMMIT", "COMMIT is not run"),
            ("PREPARE TRANSACTION 'x'", "PREPARE is not run"),
            ("COPY item TO PROGRAM 'cat'", "COPY is not run"),
            ("SET default_transaction_read_only = on", "SET is not run"),
            ("VACUUM item", "VACUUM cannot run inside a transaction block"),
        ):
            assert said in error_text(await call("write_sql", sql)), sql
        assert rows_of(await call("execute_sql", "SELECT name, n FROM item")) == [["a", 1]]
    await nobody_left(postgres, url)


async def test_a_lock_is_not_waited_for_for_ever(postgres: PostgresServer, url: str) -> None:
    async def locked(url: str) -> asyncpg.Connection:
        connection = await asyncpg.connect(url)
        await connection.execute("BEGIN; LOCK TABLE item")
        return connection

    holder = postgres.run(locked, url)
    try:
        async with calling_postgres(url, timeout=1) as call:
            for action, sql in (("write_sql", "UPDATE item SET n = 3"), ("execute_sql", "TABLE item")):
                assert "a lock that another session holds" in error_text(await call(action, sql))
    finally:
        postgres.run(lambda _: holder.close(), url)


async def test_cut_anywhere_a_change_is_whole_or_absent_and_its_session_gone(
    postgres: PostgresServer, url: str, anyio_backend: Any
) -> None:
    told: set[int] = set()
    async with calling_postgres(url) as call:

        async def work(at: int) -> None:
            sql = f"INSERT INTO item (name, n) VALUES ('{at}a', {at}), ('{at}b', {at}) RETURNING id"
            assert len(rows_of(await call("write_sql", sql))) == 2
            told.add(at)

        async def check(at: int) -> None:
            await nobody_left(postgres, url)
            [[count]] = rows_of(await call("execute_sql", f"SELECT count(*) FROM item WHERE n = {at}"))
            assert count in ((2,) if at in told else (0, 2))
            # AnyIO's cancellation waits for what cannot be undone, so that it is said.
            assert name != "scope" or (count == 2) == (at in told)

        for name in CANCELLERS if anyio_backend == "asyncio" else ("scope",):
            told.clear()
            assert await cut_at(CANCELLERS[name], work, check) > 0
            await call("write_sql", "TRUNCATE item")


async def test_a_pooler_in_transaction_mode_is_given_nothing_to_keep(postgres: PostgresServer, url: str) -> None:
    with stub_pooler(url) as pooled:
        async with calling_postgres(f"{pooled}?sslmode=disable") as call:
            for number in range(1, 4):
                assert rows_of(await call("execute_sql", "SELECT current_setting('transaction_read_only')")) == [["on"]]
                change = f"INSERT INTO item (name, n) VALUES ('{number}', {number}) RETURNING n, ROW(name, n)"
                assert rows_of(await call("write_sql", change)) == [[number, [str(number), number]]]
                error_text(await call("execute_sql", "SELECT 1/0"))

        async def left(url: str) -> list[str]:
            found = []
            connections = [await asyncpg.connect(url, ssl=False, statement_cache_size=0) for _ in range(2)]
            for connection in connections:
                await connection.execute("BEGIN")
            for connection in connections:
                asked = "SELECT name FROM pg_prepared_statements UNION ALL SELECT name FROM pg_settings"
                found += await connection.fetch(f"{asked} WHERE source = 'session' AND name ~ 'timeout|read_only|zone'")
                await connection.close()
            return [row[0] for row in found]

        # Both of the pooler's connections, for each is held by one transaction.
        assert postgres.run(left, pooled) == []


async def test_the_journals_own_database_is_no_tools(postgres: PostgresServer, postgres_url: str) -> None:
    log = await open_log(postgres_url, AttemptsProjection(), CHAINS)
    other = postgres.create_database()
    try:
        for url in (postgres_url, postgres_url.replace("127.0.0.1", "localhost")):
            async with calling_postgres(url, store=log.store) as call:
                for action, sql in (("execute_sql", "SELECT 1"), ("write_sql", "CREATE TABLE t (a int)")):
                    assert "the journal's own database" in error_text(await call(action, sql))
                assert "the journal's own database" in error_text(await call("get_schema"))
        # Another of the same server is.
        async with calling_postgres(other, store=log.store) as call:
            assert rows_of(await call("execute_sql", "SELECT 1")) == [[1]]
        # A role that may not be told the cluster's identifier is known by other signs.
        postgres.execute_on(postgres_url, "REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC")
        postgres.execute_on(postgres_url, "CREATE ROLE guest LOGIN")
        async with calling_postgres(postgres_url.replace("postgres:", "guest:", 2), store=log.store) as call:
            assert "the journal's own database" in error_text(await call("execute_sql", "SELECT 1"))
    finally:
        postgres.execute("DROP ROLE IF EXISTS guest")
        postgres.drop_database(other)
        await log.aclose()
