"""What a model is told of one call: its result, or an honest word on why there is none."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, TypeAlias

import msgspec

from engine.call import ToolCall
from engine.preview import cut_text
from engine.text_fence import foreign, has_marks, lasting_mark
from engine.truncation import cut_for_model
from events.codec import encode_json
from events.types import Denied, Executed, Failed, StreamEvent
from projections.row import AttemptRow

__all__ = ("Answer", "Outcome", "answer_of", "never_started", "with_edit")

Outcome: TypeAlias = Literal["result", "error", "denied", "open"]
"""``result``: the tool's own; ``error``: it failed, or reports one; ``denied``: it was not run; ``open``: not yet."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """One call's answer.

    :ivar call: the call, with the id under which it goes back to the provider
    :ivar text: for families that take text
    :ivar value: the result as JSON content, where it is whole and no marks stand around it; else the text
    """

    call: ToolCall
    outcome: Outcome
    text: str
    value: Any


_SHOWN = 2000
"""Characters of edited arguments that are shown."""

_WAITING = {
    "awaiting_approval": "It waits for a person's approval and has not run. Do not assume that it will be approved.",
    "requires_client_execution": "It is with the client that executes it; no result has come back yet.",
    "requires_input": "It waits for input that its server asked for; there is no result yet.",
}


def never_started(call: ToolCall) -> Answer:
    """Answer a call that the log never saw."""
    text = (
        "This call was not run: it was interrupted before it was started, and had no effect. Call it again if needed."
    )
    return _worded(call, "error", text)


def answer_of(call: ToolCall, row: AttemptRow, last: StreamEvent, limit: int | None, untrusted: bool) -> Answer:
    """Answer a call by what the log has of it: its row, and the last event of the five kinds with its whole result.

    :param limit: characters of the result's text, its marks included; None: whole
    :param untrusted: a result stands between marks, an error and what the tool raised too: the same ones each time
    """
    match last:
        case Executed() if untrusted:
            return _foreign_result(call, last, limit)
        case Executed():
            return _result(call, last, limit)
        case Failed() if untrusted and last.exception_type is not None:
            # What a tool raised may say what was answered to it.
            text = f"Error: {last.message}"
            return _worded(call, "error", foreign(text, lasting_mark(last.id, text)))
        case Failed():
            return _worded(call, "error", f"Error: {last.message}")
        case Denied():
            return _worded(call, "denied", last.message)
        case _:
            return _worded(call, "open", _standing(row))


def with_edit(answer: Answer, arguments: Any) -> Answer:
    """Return the answer of a call that its approver edited, saying what was run: it is not what the model sent."""
    ran = cut_text(encode_json(arguments).decode(), _SHOWN)
    note = f"The user who approved this call changed its arguments to {ran}"
    return msgspec.structs.replace(
        answer, text=f"{note}. With those: {answer.text}", value={"note": note, "result": answer.value}
    )


def _result(call: ToolCall, executed: Executed, limit: int | None) -> Answer:
    value, text = executed.result, _text_of(executed)
    shown = cut_for_model(value, text, executed.key, limit)
    if shown is not text and has_marks(text):
        # Its ends may have lost the tool's own marks.
        return _foreign_result(call, executed, limit)
    value = value if shown is text else msgspec.json.decode(shown)
    return Answer(call=call, outcome=_outcome_of(executed), text=shown, value=value)


def _foreign_result(call: ToolCall, executed: Executed, limit: int | None) -> Answer:
    text = _text_of(executed)
    fence = partial(foreign, mark=lasting_mark(executed.id, text))
    return _worded(call, _outcome_of(executed), cut_for_model(executed.result, text, executed.key, limit, fence))


def _text_of(executed: Executed) -> str:
    return executed.result if isinstance(executed.result, str) else encode_json(executed.result).decode()


def _outcome_of(executed: Executed) -> Outcome:
    return "error" if executed.status == "error" else "result"


def _standing(row: AttemptRow) -> str:
    if row.gate == "paused" and row.pause_type is not None:
        return f"This call has no result yet. {_WAITING[row.pause_type]}"
    if row.gate == "approved":
        return "This call has no result yet. It was approved, and has not run so far."
    return "This call has no result: it was started and has not reported its end, so it may have had its effect."


def _worded(call: ToolCall, outcome: Outcome, text: str) -> Answer:
    return Answer(call=call, outcome=outcome, text=text, value=text)
