"""Rows of ``tool_call_attempts`` as typed values, and how they are read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import and_, or_, select

from events.codec import decode_json
from events.errors import LogUnavailable
from events.keys import journal_key, tenant_column, tenant_of
from events.log import EventLog
from events.schema import streams
from events.transitions import Attempt, Gate, Status, describe
from events.types import Effect, PauseType, ResultStatus
from projections.schema import attempts

__all__ = ("AttemptRow", "read_attempt", "read_message")

_DUPLICATE = re.compile(r"(#\d+)?~d\d+")


class AttemptRow(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one call, column by column; ``arguments`` and ``result`` are JSON content.

    ``stream`` is the log's number of the stream, ``version`` how many events it has, ``position`` that of the last one.
    A result past 400,000 characters is its head here; ``EventLog.whole`` has the rest.
    """

    stream: int
    user_id: str | None
    key: str
    call_id: str
    message_id: str | None
    run_id: str | None
    tool_id: str | None
    tool_name: str
    action_name: str
    arguments: Any
    digest: str
    status: Status
    gate: Gate
    pause_type: PauseType | None
    rule: str | None
    expires_at: datetime | None
    result_status: ResultStatus | None
    result: Any
    error: str | None
    artifact_id: str | None
    worker: str
    headless: bool
    conversation_id: str | None
    agent_id: str | None
    llm_name: str
    effect: Effect
    idempotent: bool
    fingerprint: str
    late: bool
    traceparent: str | None
    proposed_at: datetime
    updated_at: datetime
    version: int
    position: int

    @property
    def attempt(self) -> Attempt:
        """The part that the lifecycle speaks of."""
        return Attempt(
            status=self.status,
            gate=self.gate,
            pause_type=self.pause_type,
            late=self.late,
            idempotent=self.idempotent,
            version=self.version,
        )

    @property
    def duplicate(self) -> bool:
        """Whether this is a refused repetition of a running call (``key~d1``), not a call of its own."""
        base = journal_key(self.call_id, self.message_id, self.run_id)
        return self.key.startswith(base) and _DUPLICATE.fullmatch(self.key, len(base)) is not None

    def __repr__(self) -> str:
        late = " late" if self.late else ""
        what = f"{self.tool_name}.{self.action_name}"
        return f"<AttemptRow {self.key} {describe(self.attempt)} v{self.version}{late} {what}>"


async def read_attempt(log: EventLog, key: str, user_id: str | None) -> AttemptRow | None:
    """Return the row of one call, or None where the tenant has no such call.

    :raises LogUnavailable: if the database cannot be read, or the row is damaged
    """
    rows = await log.store.read(_of_streams().where(streams.c.tenant == tenant_column(user_id), streams.c.key == key))
    return _decoded(rows[0]) if rows else None


async def read_message(log: EventLog, message_id: str, user_id: str | None) -> list[AttemptRow]:
    """Return the rows of a turn in the order in which its calls were proposed, refused repetitions included.

    :param message_id: the message, or the run of calls that had none
    :raises LogUnavailable: if the database cannot be read, or a row is damaged
    """
    # Keys are joined texts, so a range may hold another message's rows: the columns decide.
    turn = or_(
        attempts.c.message_id == message_id,
        and_(attempts.c.message_id.is_(None), attempts.c.run_id == message_id),
    )
    statement = _of_streams().where(
        streams.c.tenant == tenant_column(user_id),
        streams.c.key >= f"{message_id}:",
        streams.c.key < f"{message_id};",
        turn,
    )
    rows = await log.store.read(statement.order_by(attempts.c.stream))
    return [_decoded(row) for row in rows]


def _of_streams() -> Any:
    return select(*attempts.c).join_from(streams, attempts, attempts.c.stream == streams.c.stream)


def _decoded(columns: Sequence[Any]) -> AttemptRow:
    names = AttemptRow.__struct_fields__
    row = dict(zip(names, columns, strict=True))
    row["user_id"] = tenant_of(row["user_id"])
    for name in ("arguments", "result"):
        if row[name] is not None:
            try:
                row[name] = decode_json(row[name])
            except msgspec.DecodeError as error:
                raise LogUnavailable(
                    f"the state row of call {row['key']!r} is damaged ({name}: {error}); run verify, then rebuild"
                ) from error
    return AttemptRow(**row)
