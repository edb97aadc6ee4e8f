"""The lifecycle's vocabulary: phases, descriptions, and what the table says of itself."""

from __future__ import annotations

import pytest

from events import Executed, Failed, LateOutcome, Paused, Proposed, Resumed, ToolEvent, TransitionRejected
from events.transitions import STATUSES, Attempt, advance, describe, kind_of, requirement, some_state_before
from tests.events.appends import follow, proposed
from tests.lives import lives

__all__ = ()

EVENTS = {kind_of(event): event for life in lives(proposed("c1")) for event in life}


def attempt(*names: str) -> Attempt:
    """Fold a proposal and one pause of each kind named."""
    first = proposed("c1")
    state = advance(None, first)
    for name in names:
        state = advance(state, follow(Paused, first, pause_type=name, reason="ask"))
    return state


def test_a_state_says_itself_in_one_line() -> None:
    assert repr(attempt()) == "<Attempt proposed/open v1>"
    waiting = attempt("requires_input")
    assert repr(waiting) == "<Attempt proposed/paused requires_input v2>"
    assert (describe(waiting), waiting.phase) == ("proposed/paused (requires_input)", "paused:requires_input")


def test_an_ended_call_has_no_phase_and_keeps_its_gate() -> None:
    first = proposed("c1")
    ended = advance(advance(None, first), follow(Executed, first, result=1))
    assert (ended.phase, ended.gate, ended.version) == (None, "open", 2)


@pytest.mark.parametrize("kind", EVENTS)
def test_what_precedes_an_event_allows_it(kind: str) -> None:
    event = EVENTS[kind]
    assert advance(some_state_before(event), event).version == 2


@pytest.mark.parametrize("kind", EVENTS)
def test_the_table_speaks_of_known_statuses(kind: str) -> None:
    rule = requirement(EVENTS[kind])
    assert set(rule.status or ()) <= set(STATUSES)
    assert rule.gives is None or rule.gives in STATUSES


def test_a_proposal_begins_and_nothing_else_does() -> None:
    assert requirement(proposed("c1")).status is None
    assert all(requirement(event).status is not None for event in EVENTS.values())


def test_a_late_event_marks_the_attempt_for_good() -> None:
    first = proposed("c1")
    failure = follow(Failed, first, kind="timeout", message="slow")
    marked = advance(advance(None, first), follow(LateOutcome, first, outcome=failure))
    assert marked.late
    assert advance(marked, failure).late


def test_only_what_is_idempotent_can_be_taken_over() -> None:
    for idempotent in (True, False):
        first = proposed("c1", idempotent=idempotent)
        state = advance(None, first)
        claimed: list[ToolEvent] = [
            follow(Paused, first, pause_type="requires_input", reason="ask"),
            follow(Resumed, first, worker="w2", answer=1),
        ]
        for event in claimed:
            state = advance(state, event)
        takeover = follow(Resumed, first, worker="w3", takeover=True)
        if idempotent:
            assert advance(state, takeover).gate == "claimed"
        else:
            with pytest.raises(TransitionRejected):
                advance(state, takeover)


def test_a_rejection_names_the_call_the_event_and_the_state() -> None:
    first = proposed("c1")
    ended = advance(advance(None, first), follow(Executed, first, result=1))
    with pytest.raises(TransitionRejected) as rejected:
        advance(ended, follow(Failed, first, kind="timeout", message="slow"))
    assert (rejected.value.key, rejected.value.event, rejected.value.state) == ("m:c1", "failed", "executed/open")


def test_kinds_are_tags() -> None:
    assert kind_of(proposed("c1")) == Proposed.__struct_config__.tag == "proposed"
