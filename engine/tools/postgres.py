"""``postgres``: SQL on the database of a row's owner: reading without harm, changes with a person's consent."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, ClassVar

from engine.action_entry import action_definition, text_definition, whole_number_definition
from engine.contract import Tool, ToolContext, ToolResult
from engine.sql.allowance import COST, ROWS, SECONDS, SIZE, Allowance
from engine.sql.dsn import Dsn
from engine.sql.errors import SqlError
from engine.sql.request import Request

__all__ = ("Postgres",)


class Postgres(Tool):
    """Each call has a connection of its own, and each statement a transaction of its own."""

    name = "postgres"
    display_name = "Postgres"
    description = "Query a Postgres database; change it where a person agrees."
    timeout = 120.0
    untrusted = True
    limits: ClassVar[tuple[str, ...]] = (
        f"{ROWS:,} rows and {SIZE // 1024} KB of JSON per result, unless the row says less",
        f"{SECONDS:g} s per statement, unless the row says otherwise; 5 s of waiting for a lock",
        "one statement per call, of at most 100,000 characters",
        "public hosts at ports 5432, 6432 and 6543, and what the operator allows; never the journal's own database",
        "4 connections per row at a time",
    )
    errors: ClassVar[tuple[str, ...]] = (
        'Database error: relation "x" does not exist ...',
        "Database error: cannot execute INSERT in a read-only transaction; to change data, use postgres_write_sql",
        "Database error: sql_query must be one statement; send several in several calls",
        "Database error: the statement was cancelled: it took longer than N s",
        "Database error: the query was not run: its estimated cost is N, the row allows M; ...",
        "Database error: the server does not accept the user or the password",
        "Database error: the database's host is not, or not only, at a public address; ...",
    )

    async def execute_action(self, action_name: str, context: ToolContext, /, **kwargs: Any) -> Any:
        """Run an action; whatever goes wrong on the way or in the database is an error result.

        Cancelled, its statement is cancelled on the server too.
        """
        token, failed = str(self.config.get("token") or ""), "Failed to execute SQL query."
        try:
            request = Request.of(action_name, kwargs, Dsn.of(token))
            failed = request.failed
            left = (context.deadline - datetime.now(UTC)).total_seconds()
            allowance = Allowance.of(self.config, kwargs.get("max_rows"), request.dsn.connect_timeout, left)
            return await self._answer(request, allowance, token)
        except SqlError as error:
            said = f"Database error: {str(error).removesuffix('.')}."
            return ToolResult({"status_code": 500, "message": failed, "error": said}, status="error")

    async def _answer(self, request: Request, allowance: Allowance, token: str) -> dict[str, Any]:
        # Imported here: the driver is a tenth of a second that the catalogue need not cost.
        from engine.sql.databases import databases
        from engine.sql.secrecy import Secrecy

        secrecy = Secrecy(token, request.dsn)
        row, shared = (self.scope.owner, self.scope.tool_id), self.scope.services.shared(databases)
        try:
            content = await shared.use(row, request.dsn, allowance, request.work)
        except SqlError as error:
            raise SqlError(secrecy.said(str(error))) from error
        return {"status_code": 200, **secrecy.content(content)}

    def config_problems(self) -> list[str]:
        """Return what is wrong with the connection string, as far as that can be told without connecting."""
        try:
            Dsn.of(str(self.config.get("token") or ""))
        except SqlError as error:
            return [str(error)]
        return []

    def preview_request(self, action_name: str, arguments: dict[str, Any]) -> str:
        """Return what a call would send, and where. :raises SqlError: if nothing would be sent"""
        return Request.of(action_name, arguments, Dsn.of(str(self.config.get("token") or ""))).preview()

    def get_actions_metadata(self) -> list[dict[str, Any]]:
        """Return the actions."""
        return [_execute(), _write(), _explain(), _get_schema()]

    def get_config_requirements(self) -> dict[str, Any]:
        """Return where the database is, and how much of it a call may take."""
        number = {"type": "integer", "required": False}
        return {
            "token": {
                "type": "string",
                "required": True,
                "secret": True,
                "label": "Connection string",
                "description": "postgresql://user:password@host:5432/database?sslmode=verify-full",
            },
            "timeout": {
                "type": "number",
                "minimum": 1,
                "maximum": 100,
                "default": SECONDS,
                "description": "Seconds for a statement.",
            },
            "max_rows": {**number, "minimum": 1, "maximum": ROWS, "default": ROWS, "description": "Rows per result."},
            "max_bytes": {
                **number,
                "minimum": 1024,
                "maximum": SIZE,
                "default": SIZE,
                "description": "Bytes of JSON of a result's rows.",
            },
            "max_cost": {
                "type": "number",
                "required": False,
                "minimum": 1,
                "maximum": COST,
                "description": "What the server may estimate that a statement costs, in its planner's units; one that "
                "would cost more is not run. Any, if left out.",
            },
        }


def _sql() -> dict[str, Any]:
    return {**text_definition("One SQL statement, its values written into it.", 100_000), "minLength": 1}


def _execute() -> dict[str, Any]:
    return action_definition(
        "postgres_execute_sql",
        "Run one query (SELECT, WITH, VALUES, TABLE, SHOW, EXPLAIN) in a read-only transaction and return its rows as"
        " JSON. Moments are in UTC, numeric is text, bytea base64. truncated: true says that there are more rows.",
        {"sql_query": _sql(), "max_rows": whole_number_definition("Rows to return, at most.", 1, ROWS)},
        "sql_query",
        effect="read",
        idempotent=True,
    )


def _write() -> dict[str, Any]:
    entry = action_definition(
        "postgres_write_sql",
        "Run one statement that changes the database (INSERT, UPDATE, DELETE, MERGE, CREATE, ALTER, DROP) in a"
        " transaction of its own, and commit it. A person is asked first. Returns the number of rows, and what"
        " RETURNING gives.",
        {"sql_query": _sql(), "max_rows": whole_number_definition("Rows of RETURNING to return, at most.", 1, ROWS)},
        "sql_query",
    )
    return {**entry, "require_approval": True}


def _explain() -> dict[str, Any]:
    return action_definition(
        "postgres_explain",
        "Return the plan of one statement with its estimated cost and rows. The statement is not run.",
        {"sql_query": _sql()},
        "sql_query",
        effect="read",
        idempotent=True,
    )


def _get_schema() -> dict[str, Any]:
    return action_definition(
        "postgres_get_schema",
        "Return the tables of a schema: columns with types and defaults, keys, indexes, comments, row estimates, a"
        " page at a time; and the names of the other schemas.",
        {
            "schema": text_definition("The schema's name; public where it is left out.", 63),
            "tables": text_definition("A table's name, * and ? standing for anything: order*.", 63),
            "after": text_definition("next_after of the page before.", 63),
            "limit": whole_number_definition("Tables per page, 50 where it is left out.", 1, 200),
        },
        effect="read",
        idempotent=True,
    )
