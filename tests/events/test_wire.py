"""The light copies: what browsers and chat storage get."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from events import Artifact, Denied, Executed, Failed, LateOutcome, ToolEvent, chat_record, to_wire
from events.codec import encode_json
from events.transitions import kind_of
from tests.events.appends import follow, proposed
from tests.lives import lives

__all__ = ()

SECRET = "canary-8c1e"
EVENTS = {kind_of(event): event for life in lives(proposed("c1")) for event in life} | {"proposed": proposed("c1")}


@pytest.mark.parametrize("kind", EVENTS)
def test_every_kind_has_a_wire_form_that_is_json(kind: str) -> None:
    event: ToolEvent = EVENTS[kind]
    wire = to_wire(event)
    assert (wire["type"], wire["id"], wire["key"]) == (kind, event.id, event.key)
    encode_json(wire)


def test_behaviour_072_the_wire_form_has_the_preview_and_neither_result_nor_resolved_arguments() -> None:
    event = follow(
        Executed,
        proposed("c1"),
        result={"whole": SECRET},
        preview='{"whole": ...',
        resolved={"body": {"token": SECRET}},
        status="error",
    )
    wire = to_wire(event)
    assert (wire["result"], wire["status"], wire["artifact_id"]) == ('{"whole": ...', "error", None)
    assert SECRET not in encode_json(wire).decode()
    late = to_wire(follow(LateOutcome, proposed("c1"), outcome=event))
    assert late["outcome"]["result"] == '{"whole": ...'
    assert SECRET not in encode_json(late).decode()


def test_the_wire_form_of_a_proposal_keeps_internals_back() -> None:
    event = replace(proposed("c1"), raw=SECRET, extra={"sign": SECRET}, worker=SECRET, traceparent=SECRET)
    wire = to_wire(replace(event, digest=SECRET, fingerprint=SECRET, arguments={"a": 1}))
    assert wire["arguments"] == {"a": 1}
    assert SECRET not in encode_json(wire).decode()


def test_behaviour_124_a_chat_keeps_seven_things_and_two_more_where_there_are_any() -> None:
    first = proposed("c1", arguments={"a": 1})
    result = follow(Executed, first, result="whole", preview="who...", resolved={"body": {}})
    assert chat_record(first, result) == {
        "tool_name": "counter",
        "call_id": "c1",
        "action_name": "bump",
        "arguments": {"a": 1},
        "artifact_id": None,
        "result": "who...",
        "status": "completed",
    }
    labelled = replace(first, labels={"device_id": "d1", "other": "x"})
    filed = replace(result, artifact_id="a1", artifacts=(Artifact(id="f1", filename="x"),))
    record = chat_record(labelled, filed)
    assert (record["artifact_id"], record["device_id"]) == ("a1", "d1")
    assert list(record["artifacts"]) == [{"id": "f1", "filename": "x", "ref": None}]
    assert "other" not in record


@pytest.mark.parametrize("kind", [Failed, Denied])
def test_a_call_without_a_result_is_an_error_in_the_chat(kind: type[Failed | Denied]) -> None:
    first = proposed("c1")
    outcome: Failed | Denied = (
        follow(Failed, first, kind="exception", message="boom")
        if kind is Failed
        else follow(Denied, first, reason="policy", message="boom")
    )
    record = chat_record(first, outcome)
    assert (record["status"], record["result"]) == ("error", "boom")
