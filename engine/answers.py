"""``tool_results``: what the model is told of each call of a turn; no call is ever left without an answer.

A provider refuses every later turn after a call without its result, so a session that crashed in the middle of a turn
is continued by answering honestly: what finished from the log, everything else by what is known of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from engine.answer_text import Answer, answer_of, never_started, with_edit
from engine.call import ToolCall, unique_ids
from engine.catching_up import catch_up
from engine.recorded import recorded_events
from engine.runtime import Runtime
from engine.superseding import close_waiting
from events.masking import masked
from events.types import Executed, Failed, Proposed
from projections.row import AttemptRow
from projections.rows import read_message

__all__ = ("answers",)


class _Told(msgspec.Struct, frozen=True):
    """A call as it is sent back to the provider, and the row that answers it; None: the log never saw it."""

    call: ToolCall
    row: AttemptRow | None


async def answers(
    runtime: Runtime,
    message_id: str,
    user_id: str | None,
    calls: Sequence[ToolCall] | None,
    limit: int | None,
    close_open: bool,
) -> list[Answer]:
    """Return one answer per call, in call order.

    :param calls: the turn's calls as the model made them; None: those that the log has
    :param limit: characters of one result; None: whole
    :param close_open: what still waits for a decision, a client or input is closed first
    :raises LogUnavailable: if the log cannot be read (or, with ``close_open``, written), or what became of one of the
        calls is still in this machine's spool
    """
    await catch_up(runtime, user_id, turn=message_id)
    rows = [row for row in await read_message(runtime.log, message_id, user_id) if not row.duplicate]
    if close_open:
        await close_waiting(runtime, rows)
        rows = [row for row in await read_message(runtime.log, message_id, user_id) if not row.duplicate]
    told = _of_rows(rows) if calls is None else _of_calls(calls, rows)
    return [await _answer(runtime, entry, limit) for entry in told]


async def _answer(runtime: Runtime, told: _Told, limit: int | None) -> Answer:
    if told.row is None:
        return never_started(told.call)
    recorded = await recorded_events(runtime.log, told.row.key, told.row.user_id)
    opening = recorded[0]
    assert isinstance(opening, Proposed)
    call = msgspec.structs.replace(told.call, extra=opening.extra)
    answer = answer_of(call, told.row, recorded[-1], limit, _untrusted(runtime, told.row))
    edited = told.row.arguments != opening.arguments and isinstance(recorded[-1], Executed | Failed)
    return with_edit(answer, masked(told.row.arguments)) if edited else answer


def _untrusted(runtime: Runtime, row: AttemptRow) -> bool:
    """Tell whether others may have written a call's result; what its client handed in is the application's own."""
    by_client = row.pause_type == "requires_client_execution"
    return not by_client and runtime.toolsets.tools.untrusted(row.tool_name)


def _of_rows(rows: Sequence[AttemptRow]) -> list[_Told]:
    calls = [ToolCall(id=row.call_id, name=row.llm_name, arguments=row.arguments) for row in rows]
    return [_Told(call, row) for call, row in zip(unique_ids(calls), rows, strict=True)]


def _of_calls(calls: Sequence[ToolCall], rows: Sequence[AttemptRow]) -> list[_Told]:
    """Pair calls with rows: by id, the second call of one id with its second row (PARSE-10); then those without one."""
    by_id: dict[str, list[AttemptRow]] = {}
    for row in rows:
        by_id.setdefault(row.call_id, []).append(row)
    own = {call.id for call in calls if call.id}
    nameless = [row for row in rows if row.call_id not in own]
    taken: dict[str, int] = {}
    told: list[_Told] = []
    for call, unique in zip(calls, unique_ids(list(calls)), strict=True):
        if not call.id:
            found = next((row for row in nameless if row.llm_name == (call.name or "")), None)
            if found is not None:
                nameless.remove(found)
                unique = msgspec.structs.replace(unique, id=found.call_id)
            told.append(_Told(unique, found))
            continue
        place = taken.get(call.id, 0)
        taken[call.id] = place + 1
        # Beyond the rows of an id, the calls are repetitions of the last: they share its answer.
        having = by_id.get(call.id, [])
        told.append(_Told(unique, having[min(place, len(having) - 1)] if having else None))
    return told
