"""``postgres`` through the engine: the gate, the journal, two owners; its schemas, configuration and previews."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest

from engine import CallContext, Engine, Settings, ToolCall
from engine.config_check import check_config
from engine.contract import Scope
from engine.credentials import MasterKeys, Vault
from engine.net import AllowList, NetPolicy
from engine.rows import ToolRow
from engine.tools.postgres import Postgres
from events import Denied, Executed, Failed, Paused
from events.errors import Refused
from tests.engine.sql.calls_of_postgres import calling_postgres, error_text, nobody_left, rows_of
from tests.engine.staging import outcome_of, proved, stream_of
from tests.postgres_server import PASSWORD, PostgresServer

pytestmark = [pytest.mark.anyio, pytest.mark.postgres]

_KEYS = MasterKeys("k1", {"k1": b"1" * 32})


@asynccontextmanager
async def _engine(journal_url: str, **urls: str) -> AsyncIterator[Engine]:
    """Open an engine in which each of these users has a row of the tool."""
    rows = []
    for user, url in urls.items():
        sealed = Vault(_KEYS).seal({"token": url}, owner=user, row_id=f"row-{user}")
        rows.append(ToolRow(id=f"row-{user}", name="postgres", user_id=user, credentials=sealed))
    settings = Settings(net=NetPolicy(allow=AllowList(("127.0.0.1",))), master_keys=_KEYS)
    async with Engine.open(journal_url, rows=rows, tools=[Postgres], settings=settings) as engine:
        yield engine


def _call(action: str, call_id: str, **arguments: Any) -> ToolCall:
    return ToolCall(id=call_id, name=f"postgres_{action}", arguments=arguments)


def _context(user: str) -> CallContext:
    return CallContext(user_id=user, message_id=f"m-{user}")


def _content(outcome: Any) -> Any:
    assert isinstance(outcome, Executed), outcome
    return outcome.result


async def test_a_query_runs_and_a_change_waits_for_a_person(
    postgres: PostgresServer, journal_url: str, empty_postgres_url: str
) -> None:
    async with _engine(journal_url, ada=empty_postgres_url) as engine:
        ada = _context("ada")
        for call_id in ("c1", "c2"):
            change = _call("write_sql", call_id, sql_query=f"CREATE TABLE {call_id} AS SELECT 1.5 AS price")
            assert isinstance(await outcome_of(engine, change, ada), Paused)
        await engine.decide("m-ada:c1", approve=False, by="bob", user_id="ada")
        await engine.decide("m-ada:c2", approve=True, by="bob", user_id="ada")
        seen = await outcome_of(engine, _call("execute_sql", "c3", sql_query="TABLE c2"), ada)
        assert isinstance(seen, Executed)
        assert seen.status == "error"
        assert 'relation "c2" does not exist' in seen.result["error"]
        async with aclosing(engine.resume("m-ada:c2", ada)) as stream:
            [done] = [event async for event in stream]
        assert _content(done)["message"] == "Query executed successfully, 1 rows affected."
        seen = await outcome_of(engine, _call("execute_sql", "c4", sql_query="TABLE c2"), ada)
        assert _content(seen)["response_data"]["data"] == [{"price": "1.5"}]
        seen = await outcome_of(engine, _call("execute_sql", "c5", sql_query="SELECT to_regclass('c1')"), ada)
        assert _content(seen)["response_data"]["data"] == [{"to_regclass": None}]
        kept = "".join([repr(await stream_of(engine, f"m-ada:c{number}", "ada")) for number in range(1, 6)])
        assert PASSWORD not in kept
        assert empty_postgres_url not in kept
        await proved(engine)
    await nobody_left(postgres, empty_postgres_url)


async def test_each_owner_has_a_database_of_their_own(postgres: PostgresServer, sqlite_url: str) -> None:
    urls = {user: postgres.create_database() for user in ("ada", "bob")}
    for user, url in urls.items():
        postgres.execute_on(url, f"CREATE TABLE mine AS SELECT '{user}' AS owner")
    async with _engine(sqlite_url, **urls) as engine:
        for number in range(3):
            for user in urls:
                query = _call("execute_sql", f"c{number}", sql_query="TABLE mine")
                seen = _content(await outcome_of(engine, query, _context(user)))
                assert seen["response_data"]["data"] == [{"owner": user}]
        stranger = await outcome_of(engine, _call("execute_sql", "c1", sql_query="TABLE mine"), _context("eve"))
        assert isinstance(stranger, Denied | Failed)
    for url in urls.values():
        await nobody_left(postgres, url)
        postgres.drop_database(url)


async def test_what_a_model_sends_is_checked_before_anything_is_connected_to(sqlite_url: str) -> None:
    # There is no such server: that would be another error.
    async with _engine(sqlite_url, ada="postgresql://app:x@10.0.0.1/shop") as engine:
        sent: tuple[tuple[str, dict[str, Any]], ...] = (
            ("execute_sql", {}),
            ("execute_sql", {"sql_query": ""}),
            ("execute_sql", {"sql_query": "SELECT 1", "max_rows": 0}),
            ("execute_sql", {"sql_query": "SELECT 1", "max_rows": 1001}),
            ("execute_sql", {"sql_query": "SELECT 1", "token": "postgresql://app@127.0.0.1/other"}),
            ("get_schema", {"limit": 1000}),
        )
        for number, (action, arguments) in enumerate(sent):
            outcome = await outcome_of(engine, _call(action, f"c{number}", **arguments), _context("ada"))
            assert isinstance(outcome, Failed), arguments
            assert outcome.kind == "invalid_arguments", arguments
        seen = await outcome_of(engine, _call("execute_sql", "c9", sql_query="SELECT 1"), _context("ada"))
        assert "not, or not only, at a public address" in _content(seen)["error"]


_SCHEMA = """
CREATE SCHEMA sales;
CREATE TABLE sales.customer (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, email text NOT NULL UNIQUE);
CREATE TABLE sales.order_line (
    number int, place int, customer int REFERENCES sales.customer (id),
    price numeric(10, 2) DEFAULT 0 CHECK (price >= 0),
    twice numeric GENERATED ALWAYS AS (price * 2) STORED, PRIMARY KEY (number, place)
);
COMMENT ON TABLE sales.order_line IS 'What was ordered';
COMMENT ON COLUMN sales.order_line.price IS 'In euros';
CREATE INDEX by_customer ON sales.order_line (customer) WHERE price > 0;
INSERT INTO sales.customer (email) SELECT 'c' || g FROM generate_series(1, 50) g; ANALYZE sales.customer;
CREATE VIEW sales.dear AS SELECT * FROM sales.order_line WHERE price > 100;
CREATE TABLE sales."odd_%name" (); CREATE TABLE sales.oddxyname ();
CREATE TABLE sales.split (a int) PARTITION BY RANGE (a); CREATE TABLE sales.split_1 PARTITION OF sales.split DEFAULT;
"""


async def test_the_schema_with_keys_indexes_and_comments(postgres: PostgresServer, empty_postgres_url: str) -> None:
    postgres.execute_on(empty_postgres_url, _SCHEMA)
    async with calling_postgres(empty_postgres_url) as call:
        found = await call("get_schema", schema="sales")
        assert found["schemas"] == ["public", "sales"]
        assert list(found["schema"]) == ["customer", "dear", "odd_%name", "oddxyname", "order_line", "split"]
        columns, about = found["schema"]["order_line"], found["tables"]["order_line"]
        assert [column["column_name"] for column in columns] == ["number", "place", "customer", "price", "twice"]
        assert columns[3] == {
            "column_name": "price",
            "data_type": "numeric(10,2)",
            "column_default": "0",
            "is_nullable": "YES",
            "comment": "In euros",
        }
        assert columns[4]["is_generated"]
        assert columns[0]["is_nullable"] == "NO"
        assert found["schema"]["customer"][0]["is_identity"]
        assert [about["kind"], about["comment"], about["primary_key"]] == [
            "table",
            "What was ordered",
            ["number", "place"],
        ]
        assert about["foreign_keys"] == [
            {"columns": ["customer"], "references": "sales.customer", "referenced_columns": ["id"]}
        ]
        assert about["checks"] == ["CHECK ((price >= (0)::numeric))"]
        [index] = about["indexes"]
        assert index.endswith("USING btree (customer) WHERE (price > (0)::numeric)")
        assert found["tables"]["customer"]["row_estimate"] == 50
        assert found["tables"]["customer"]["unique"] == [["email"]]
        assert [found["tables"][name]["kind"] for name in ("dear", "split")] == ["view", "partitioned table"]


async def test_the_schema_comes_in_pages(postgres: PostgresServer, empty_postgres_url: str) -> None:
    postgres.execute_on(empty_postgres_url, _SCHEMA)
    async with calling_postgres(empty_postgres_url) as call:
        for asked, names in (("odd_%name", ["odd_%name"]), ("ord*", ["order_line"]), ("odd?yname", ["oddxyname"])):
            assert list((await call("get_schema", schema="sales", tables=asked))["schema"]) == names
        seen: list[str] = []
        after = ""
        while after is not None:
            page = await call("get_schema", schema="sales", limit=4, after=after)
            seen, after = seen + list(page["schema"]), page["next_after"]
            assert page["truncated"] == (after is not None)
        assert seen == ["customer", "dear", "odd_%name", "oddxyname", "order_line", "split"]
        assert (await call("get_schema", schema="no' such"))["schema"] == {}
    async with calling_postgres(empty_postgres_url, max_bytes=1024) as call:
        page = await call("get_schema", schema="sales")
        assert 1 <= len(page["schema"]) < 6
        assert page["next_after"] == list(page["schema"])[-1]


async def test_a_row_may_limit_what_a_statement_costs(postgres: PostgresServer, empty_postgres_url: str) -> None:
    postgres.execute_on(empty_postgres_url, "CREATE TABLE item AS SELECT a FROM generate_series(1, 3000) AS a")
    dear = "SELECT count(*) FROM item AS a, item AS b"
    async with calling_postgres(empty_postgres_url, max_cost=1000) as call:
        for sql in (dear, f"WITH x AS ({dear}) SELECT * FROM x", f"/* why */ ({dear})"):
            said = error_text(await call("execute_sql", sql))
            assert "was not run: its estimated cost is" in said
            assert "the row allows 1000" in said
        said = error_text(await call("write_sql", "DELETE FROM item USING item AS b, item AS c WHERE b.a > c.a"))
        assert "was not run" in said
        for sql in (f"EXPLAIN ANALYZE {dear}", "explain (analyze) select 1", "EXPLAIN SELECT 1"):
            assert "use postgres_explain" in error_text(await call("execute_sql", sql))
        assert (await call("explain", dear))["response_data"]["total_cost"] > 1000
        assert rows_of(await call("execute_sql", "SELECT count(*) FROM item")) == [[3000]]
        assert rows_of(await call("execute_sql", "SHOW transaction_read_only")) == [["on"]]
        assert (await call("write_sql", "DELETE FROM item WHERE a = 1"))["response_data"]["row_count"] == 1
        error_text(await call("execute_sql", "SELECT 1; DELETE FROM item"))


async def test_a_plan_is_made_of_what_is_not_run(postgres: PostgresServer, empty_postgres_url: str) -> None:
    postgres.execute_on(empty_postgres_url, "CREATE TABLE item AS SELECT 1 AS a")
    async with calling_postgres(empty_postgres_url) as call:
        for sql in ("SELECT * FROM item", "-- why\n(TABLE item)", "DELETE FROM item", "INSERT INTO item VALUES (2)"):
            explained = (await call("explain", sql))["response_data"]
            assert "cost=" in explained["plan"]
            assert explained["total_cost"] >= 0
        for sql in (
            "ANALYZE DELETE FROM item",
            "EXPLAIN SELECT 1",
            "SELECT 1; DELETE FROM item",
            "(ANALYZE) DELETE FROM item",
        ):
            error_text(await call("explain", sql))
        assert rows_of(await call("execute_sql", "TABLE item")) == [[1]]


def test_metadata_configuration_and_previews() -> None:
    url = "postgresql://app:tops3cret@db.example:5432/shop?sslmode=require"
    tool = Postgres({"token": url}, Scope(user_id="u", owner="u", tool_id="t1"))
    actions = {action["name"].removeprefix("postgres_"): action for action in tool.get_actions_metadata()}
    assert [name for name, action in actions.items() if action.get("require_approval")] == ["write_sql"]
    assert {name: action["effect"] for name, action in actions.items()} == {
        "execute_sql": "read",
        "write_sql": "write",
        "explain": "read",
        "get_schema": "read",
    }
    check_config("postgres", tool.get_config_requirements(), {"timeout": 5, "max_rows": 10}, {"token": url})
    for config in ({"timeout": 0}, {"max_rows": 1001}, {"max_bytes": 10**7}, {"dsn": url}):
        with pytest.raises(Refused):
            check_config("postgres", tool.get_config_requirements(), config, {"token": url})
    assert tool.config_problems() == []
    [problem] = Postgres({"token": f"{url}&service=prod"}, tool.scope).config_problems()
    assert "'service'" in problem
    preview = tool.preview_request("postgres_write_sql", {"sql_query": "DELETE FROM item"})
    assert preview == (
        "postgresql://***:***@db.example:5432/shop?sslmode=require\nBEGIN READ WRITE; DELETE FROM item; COMMIT\n"
    )
    assert "sales" in tool.preview_request("get_schema", {"schema": "sales"})
    for action, arguments in (("execute_sql", {"sql_query": "DROP TABLE item"}), ("drop", {})):
        with pytest.raises(Refused):
            tool.preview_request(action, arguments)


async def test_names_without_their_prefix_are_taken_and_secrets_are_not_in_results(empty_postgres_url: str) -> None:
    async with calling_postgres(empty_postgres_url) as call:
        assert "there is no action" in error_text(await call("drop_table"))
        query = f"SELECT '{PASSWORD}' AS a, '{empty_postgres_url}' AS b"
        assert rows_of(await call("execute_sql", query)) == [["***", "***"]]
        raised = await call("execute_sql", f"SELECT '{PASSWORD}'::int")
        assert PASSWORD not in error_text(raised)
        text = error_text(await call("execute_sql", "SELECT has_table_privilege('nobody', 'pg_class', 'SELECT')"))
        assert 'role "***" does not exist' in text
