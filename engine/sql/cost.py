"""What a statement would cost, as the server's planner has it, before it is run."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from engine.sql.errors import SqlError
from engine.sql.statement import Statement

__all__ = ("Estimate", "require_cheap")

_COST: Final = re.compile(r"cost=[0-9.]+\.\.([0-9.]+) rows=([0-9]+)")


class Estimate(msgspec.Struct, frozen=True):
    """An estimate of a whole statement: its cost in the planner's units, and the rows that it returns."""

    total_cost: float
    rows: int

    @classmethod
    def of(cls, plan: str) -> Estimate | None:
        """Read it off a plan; None: the plan has none."""
        found = _COST.search(plan)
        return cls(float(found[1]), int(found[2])) if found else None


async def require_cheap(connection: Any, statement: Statement, most: float) -> None:
    """Have a statement planned, within the transaction that it is to run in, and refuse one that would cost more.

    :param most: in the planner's units
    :raises SqlError: if it would, or nobody can tell because it is an EXPLAIN, which may run another
    """
    if statement.keyword == "EXPLAIN":
        raise SqlError("EXPLAIN is not run where the row limits the cost of a query: use postgres_explain.")
    if not statement.has_plan:
        return
    planned = await connection.prepare(f"EXPLAIN {statement.text}", name="")
    estimate = Estimate.of("\n".join(str(row[0]) for row in await planned.fetch()))
    if estimate is not None and estimate.total_cost > most:
        raise SqlError(
            f"the query was not run: its estimated cost is {estimate.total_cost:.10g}, the row allows {most:.10g}; "
            "narrow it down (see postgres_explain)"
        )
