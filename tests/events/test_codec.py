"""Events to text and back, versions, and the split of long results."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
import pytest

from events import Executed, Failed, LateOutcome, Resumed, ToolEvent
from events.codec import INLINE_LIMIT, SCHEMA_VERSIONS, Codec, decode_json, encode_json, whole_result
from events.transitions import kind_of
from tests.events.appends import follow, proposed
from tests.lives import lives

__all__ = ()

# The last life has a result that is too long for its event; its form is tested apart.
EVERY_KIND: dict[str, ToolEvent] = {kind_of(event): event for life in lives(proposed("c1"))[:-1] for event in life}
EVERY_KIND |= {"proposed": proposed("c1", arguments={"é": [1, 2.0, None, True]}, extra={"thought": "x"})}


def test_there_is_a_version_for_every_kind() -> None:
    assert set(SCHEMA_VERSIONS) == set(EVERY_KIND)


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_an_event_comes_back_as_it_was_with_its_position(kind: str) -> None:
    event = EVERY_KIND[kind]
    encoded = Codec().encode(event)
    stored = encoded.stored
    assert (stored.id, stored.kind, stored.schema_version) == (event.id, kind, SCHEMA_VERSIONS[kind])
    for data in (stored.data, stored.data.encode()):
        again = Codec().decode(kind, stored.schema_version, data, 7)
        assert again == msgspec.structs.replace(encoded.event, position=7)


@pytest.mark.parametrize("value", [0, -1, 2**64, 10**30, 1.0, -0.0, 1e300, 5e-324, "\0", "\u2028", "漢😀", {"": []}])
def test_content_keeps_its_value_and_its_text(value: Any) -> None:
    text = encode_json(value)
    assert repr(decode_json(text)) == repr(value)
    assert encode_json(decode_json(text)) == text


def test_what_a_release_does_not_know_is_none() -> None:
    data = Codec().encode(proposed("c1")).stored.data
    assert Codec().decode("dreamt", 1, data, 1) is None
    assert Codec().decode("proposed", 2, data, 1) is None
    assert Codec().is_current("proposed", 1)
    assert not Codec().is_current("proposed", 2)
    assert not Codec().is_current("dreamt", 1)


@pytest.mark.parametrize("data", ["", "{", "[]", "{}", '{"type":"proposed"}', "null"])
def test_damaged_text_is_an_error(data: str) -> None:
    with pytest.raises(msgspec.DecodeError):
        Codec().decode("proposed", 1, data, 1)


def test_fields_of_a_newer_release_are_passed_over() -> None:
    content = decode_json(Codec().encode(proposed("c1")).stored.data) | {"mood": "sunny"}
    assert Codec().decode("proposed", 1, encode_json(content), 1) is not None


def test_an_old_version_is_upcast_step_by_step() -> None:
    old = follow(Failed, proposed("c1"), kind="timeout", message="slow")
    data = Codec().encode(old).stored.data

    def second(content: dict[str, Any]) -> dict[str, Any]:
        return content | {"message": content["message"] + "2"}

    def third(content: dict[str, Any]) -> dict[str, Any]:
        return content | {"message": content["message"] + "3"}

    codec = Codec({("failed", 1): second, ("failed", 2): third}, {**SCHEMA_VERSIONS, "failed": 3})
    for version, message in ((1, "slow23"), (2, "slow3"), (3, "slow")):
        event = codec.decode("failed", version, data, 9)
        assert isinstance(event, Failed)
        assert (event.message, event.position) == (message, 9)
    assert codec.encode(old).stored.schema_version == 3


@pytest.mark.parametrize(("letter", "count"), [("x", INLINE_LIMIT), ("漢", INLINE_LIMIT), ("x", INLINE_LIMIT - 2)])
def test_behaviour_123_up_to_the_limit_a_result_stays_in_its_event(letter: str, count: int) -> None:
    event = follow(Executed, proposed("c1"), result=letter * count)
    encoded = Codec().encode(event)
    assert encoded.payload is None
    assert encoded.event == event
    assert decode_json(encoded.stored.result or "") == event.result


@pytest.mark.parametrize("letter", ["x", "漢", '"', "\n"])
def test_behaviour_123_beyond_it_the_event_has_the_head_length_and_digest(letter: str) -> None:
    text = letter * (INLINE_LIMIT + 1000)
    encoded = Codec().encode(follow(Executed, proposed("c1"), result=text))
    event = Codec().decode("executed", 1, encoded.stored.data, 1)
    assert isinstance(event, Executed)
    assert encoded.payload is not None
    assert (event.result, event.result_length) == (text[:INLINE_LIMIT], len(text))
    assert event.result_digest == encoded.payload.digest == hashlib.sha256(text.encode()).hexdigest()
    assert (encoded.payload.content, encoded.payload.length) == (text, len(text))
    assert whole_result(event, encoded.payload.content).result == text


def test_a_long_object_is_kept_as_json() -> None:
    result = [{"n": number, "s": "é"} for number in range(40_000)]
    encoded = Codec().encode(follow(Executed, proposed("c1"), result=result))
    assert isinstance(encoded.event, Executed)
    assert encoded.payload is not None
    assert encoded.event.result_format == "json"
    assert whole_result(encoded.event, encoded.payload.content).result == result


def test_a_result_that_is_encoded_already_is_not_encoded_again() -> None:
    event = follow(Executed, proposed("c1"), result=object())
    encoded = Codec().encode(event, b'{"a": [1,  2]}')
    assert encoded.stored.result == '{"a": [1,  2]}'
    again = Codec().decode("executed", 1, encoded.stored.data, 1)
    assert isinstance(again, Executed)
    assert again.result == {"a": [1, 2]}


def test_no_answer_and_the_answer_null_are_told_apart() -> None:
    first = proposed("c1")
    for event in (follow(Resumed, first, worker="w"), follow(Resumed, first, worker="w", answer=None)):
        again = Codec().decode("resumed", 1, Codec().encode(event).stored.data, 1)
        assert isinstance(again, Resumed)
        assert again.answer is event.answer


def test_a_late_outcome_has_its_outcome_inside() -> None:
    outcome = follow(Executed, proposed("c1"), result={"deep": [1]})
    event = follow(LateOutcome, proposed("c1"), outcome=outcome)
    again = Codec().decode("late_outcome", 1, Codec().encode(event).stored.data, 1)
    assert isinstance(again, LateOutcome)
    assert again.outcome == outcome
