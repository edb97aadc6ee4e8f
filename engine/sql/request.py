"""What a call asks of a database, and what it says of the outcome."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final

import msgspec

from engine.sql.dsn import Dsn
from engine.sql.errors import SqlError
from engine.sql.statement import Statement

__all__ = ("ACTIONS", "Request")

ACTIONS: Final = ("postgres_execute_sql", "postgres_write_sql", "postgres_explain", "postgres_get_schema")
_NAME: Final = 63
_TABLES: Final = 50

_Work = Callable[[Any, Any], Awaitable[dict[str, Any]]]


class Request(msgspec.Struct, frozen=True):
    """One call.

    :ivar said: what is sent, for people
    :ivar failed: what is said where it fails
    :ivar work: takes the connection and the call's allowance, and returns the result's content
    """

    dsn: Dsn
    said: str
    failed: str
    work: _Work

    @classmethod
    def of(cls, action_name: str, arguments: Mapping[str, Any], dsn: Dsn) -> Request:
        """Read a call. :raises SqlError: if there is no such action, or its arguments are not such as it takes"""
        action = action_name if action_name.startswith("postgres_") else f"postgres_{action_name}"
        if action not in ACTIONS:
            raise SqlError(f"there is no action {action_name!r}; there are {', '.join(ACTIONS)}")
        if action == "postgres_get_schema":
            return _schema(arguments, dsn)
        statement = Statement.of(_text(arguments, "sql_query"))
        if action == "postgres_write_sql":
            statement.require_change()
            failed = "Failed to execute SQL query."
            return cls(dsn, f"BEGIN READ WRITE; {statement.text}; COMMIT", failed, partial(_written, statement))
        if action == "postgres_explain":
            statement.require_planned()
            explain = f"EXPLAIN {statement.text}"
            return cls(
                dsn,
                f"BEGIN READ ONLY; {explain}; ROLLBACK",
                "Failed to explain.",
                partial(_plan, Statement(explain, "EXPLAIN")),
            )
        statement.require_query()
        said = f"BEGIN READ ONLY; {statement.text}; ROLLBACK"
        return cls(dsn, said, "Failed to execute SQL query.", partial(_selected, statement))

    def preview(self) -> str:
        """Return what would be sent, and where, without user and password."""
        return f"{self.dsn.masked()}\n{self.said}\n"


def _schema(arguments: Mapping[str, Any], dsn: Dsn) -> Request:
    from engine.sql.question import Question

    limit = arguments.get("limit", _TABLES)
    if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= 4 * _TABLES:
        raise SqlError(f"limit must be a whole number from 1 to {4 * _TABLES}")
    question = Question(
        _text(arguments, "schema", "public"), _text(arguments, "tables", ""), _text(arguments, "after", ""), limit
    )
    said = f"BEGIN READ ONLY; (what the catalogue says of the schema {question.schema!r}); ROLLBACK"
    return Request(dsn, said, "Failed to read the schema.", partial(_described, question))


def _text(arguments: Mapping[str, Any], name: str, default: str | None = None) -> str:
    value = arguments.get(name) if arguments.get(name) not in (None, "") else default
    if not isinstance(value, str):
        raise SqlError(f"{name} must be text")
    if default is not None and (len(value) > 4 * _NAME or (not value.isprintable() and value)):
        raise SqlError(f"{name} must be one line of at most {4 * _NAME} characters")
    return value


async def _selected(statement: Statement, link: Any, allowance: Any) -> dict[str, Any]:
    from engine.sql.session import read

    return {"message": "Query executed successfully.", **_content(await read(link, statement, allowance))}


async def _plan(statement: Statement, link: Any, allowance: Any) -> dict[str, Any]:
    from engine.sql.cost import Estimate
    from engine.sql.session import read

    rows = await read(link, statement, msgspec.structs.replace(allowance, cost=0.0))
    plan = "\n".join(str(next(iter(row.values()))) for row in rows.data)
    estimate = Estimate.of(plan)
    return {
        "message": "Query explained; it was not run.",
        "response_data": {"plan": plan, **(msgspec.structs.asdict(estimate) if estimate else {})},
        "truncated": rows.truncated,
    }


async def _written(statement: Statement, link: Any, allowance: Any) -> dict[str, Any]:
    from engine.sql.session import write

    written = await write(link, statement, allowance)
    count = "" if written.count is None else f", {written.count} rows affected"
    said = f"Query executed successfully{count}."
    content = {"response_data": {}} if written.rows is None else _content(written.rows)
    content["response_data"] = {"message": said, "row_count": written.count, **content["response_data"]}
    return {"message": said, **content}


async def _described(question: Any, link: Any, allowance: Any) -> dict[str, Any]:
    from engine.sql.catalogue import catalogue

    found = await catalogue(link, question, allowance)
    return {
        "message": f"Schema {question.schema!r}: {len(found.tables)} tables.",
        "schema": {table.name: table.definitions for table in found.tables},
        "tables": {table.name: table.attributes for table in found.tables},
        "schemas": found.schemas,
        "truncated": found.next_after is not None,
        "next_after": found.next_after,
    }


def _content(rows: Any) -> dict[str, Any]:
    response = {
        "data": rows.data,
        "column_names": [column.name for column in rows.columns],
        "column_types": [column.type for column in rows.columns],
    }
    return {"response_data": response, "truncated": rows.truncated} | ({"note": rows.note} if rows.note else {})
