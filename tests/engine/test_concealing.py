"""The journalled form of a call's secrets: it means what was sent, for that call alone, and the same each time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.concealing import Concealing, holds_secrets
from engine.credentials import CredentialsError, MasterKeys, Vault
from engine.results import finish
from engine.secret_forms import SecretForms
from engine.settings import Limits
from events.masking import masked
from events.types import Proposed

__all__ = ()

CANARY = "canary-51c3"
KEYS = MasterKeys("k1", {"k1": b"1" * 32})
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"password": {"writeOnly": True}, "deep": {"properties": {"pin": {"writeOnly": True}}}, "text": {}},
}
CALL = Proposed(
    id="e1",
    key="m:c1",
    call_id="c1",
    message_id="m",
    user_id="u",
    tool_id="t1",
    tool_name="counter",
    action_name="bump",
    llm_name="bump",
    arguments={},
    digest="",
    fingerprint="",
    effect="write",
    idempotent=False,
    headless=False,
    worker="w",
)


def concealing(schema: dict[str, Any] | None = SCHEMA, vault: Vault | None = None, **credentials: str) -> Concealing:
    forms = SecretForms(credentials or {"api_key": CANARY})
    return Concealing("t1", vault or Vault(KEYS), forms, schema)


texts = st.text(alphabet=st.sampled_from("«» secrt/#ab01")) | st.sampled_from(
    ["«secret ", f"«secret t1/api_key {'0' * 24}»", f"«secret text {'0' * 24}»", CANARY, "cjv1.k1.AAAA", "***"]
)
content = st.recursive(
    texts | st.lists(texts).map("".join) | st.none() | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@given(text=content, password=content, pin=content)
def test_what_runs_is_what_was_sent_and_the_kept_form_is_the_same_each_time(text: Any, password: Any, pin: Any) -> None:
    arguments = {"text": text, "password": password, "deep": {"pin": pin}}
    kept = concealing().arguments(arguments, CALL)
    assert CANARY not in repr(kept)
    assert concealing().arguments(arguments, CALL) == kept
    assert concealing().revealed(kept, CALL) == arguments
    assert masked(kept)["password"] == "***" == masked(kept)["deep"]["pin"]
    # A person who gives it back as it was shown has changed nothing.
    assert concealing().arguments(concealing().edited(masked(kept), kept, CALL), CALL) == kept
    assert concealing().arguments(concealing().edited(kept, kept, CALL), CALL) == kept
    assert concealing().revealed(concealing().content(text, CALL), CALL) == text


OTHERS = (
    {"user_id": "v"},
    {"user_id": None},
    {"message_id": "n"},
    {"run_id": "r"},
    {"call_id": "c2"},
    {"tool_id": "t2"},
    {"action_name": "dump"},
)


@pytest.mark.parametrize("other", OTHERS, ids=lambda other: "-".join(other))
@pytest.mark.parametrize("arguments", [{"text": CANARY}, {"password": "hunter22"}], ids=["reference", "sealed"])
def test_a_kept_form_means_nothing_in_another_call(other: dict[str, Any], arguments: dict[str, Any]) -> None:
    kept = concealing().arguments(arguments, CALL)
    stranger = replace(CALL, **other)
    with pytest.raises(CredentialsError):
        concealing().revealed(kept, stranger)
    # Sent by that call's model, it is the text that it is.
    again = concealing().arguments({"text": str(kept)}, stranger)
    assert concealing().revealed(again, stranger) == {"text": str(kept)}
    # Nor may a person who decides on that call have it put in.
    assert concealing().edited({"text": str(kept)}, {}, stranger) == {"text": str(kept)}


def test_a_person_cannot_have_a_secret_put_in_that_the_call_did_not_have() -> None:
    shown = concealing().arguments({"text": "harmless"}, CALL)
    for written in ("«secret t1/api_key»", f"«secret t1/api_key {'0' * 24}»", "cjv1.k1.AAAA", "***"):
        assert concealing().edited({"text": written, "password": "new"}, shown, CALL) == {
            "text": written,
            "password": "new",
        }


def test_a_changed_secret_runs_as_it_is_now_and_one_that_is_gone_does_not() -> None:
    kept = concealing().arguments({"text": f"key={CANARY}"}, CALL)
    assert concealing(api_key="renewed").revealed(kept, CALL) == {"text": "key=renewed"}
    with pytest.raises(CredentialsError, match="api_key"):
        concealing(other="another").revealed(kept, CALL)
    stranger = Concealing("t1", Vault(MasterKeys("k2", {"k2": b"2" * 32})), SecretForms({"api_key": CANARY}), None)
    with pytest.raises(CredentialsError):
        stranger.revealed(kept, CALL)


def test_under_another_key_the_same_arguments_are_known_to_be_the_same() -> None:
    arguments = {"text": CANARY, "password": "hunter22"}
    both = Vault(MasterKeys("k2", {"k2": b"2" * 32, "k1": b"1" * 32}))
    before, after = concealing().arguments(arguments, CALL), concealing(vault=both).arguments(arguments, CALL)
    assert before != after
    assert concealing(vault=both).is_same(after, before, CALL)
    assert not concealing(vault=both).is_same(after, concealing().arguments({"text": CANARY}, CALL), CALL)
    assert not concealing().is_same(after, before, CALL)


def test_what_could_not_be_read_is_sealed_whole_where_anything_is() -> None:
    unread = replace(CALL, arguments=None, raw='{"password": "hunter22", "text": ' + CANARY)
    kept = concealing().proposed(unread)
    assert masked(kept.raw) == "***"
    assert CANARY not in str(concealing(schema=None).proposed(unread).raw)


def test_results_and_errors_have_references_that_nothing_is_put_back_for() -> None:
    plain = concealing()
    shown = plain.text(f"refused: {CANARY}")
    assert shown == "refused: «secret t1/api_key»"
    assert plain.revealed(shown, CALL) == shown
    own = plain.with_values({"password": "hunter22", "deep": {"pin": 4711}})
    result = finish({"said": ["hunter22", f"x{CANARY}x"], CANARY: 1, "error": "no"})
    finished = own.finished(result, Limits())
    assert finished.value == {"said": ["***", "x«secret t1/api_key»x"], "«secret t1/api_key»": 1, "error": "no"}
    assert finished.status == "error"
    assert CANARY not in finished.preview + finished.encoded.decode()
    untouched = finish({"said": "nothing"})
    assert own.finished(untouched, Limits()) is untouched


def test_deep_results_are_walked() -> None:
    deep: Any = CANARY
    for _ in range(400):
        deep = [deep]
    assert CANARY not in str(concealing().finished(finish(deep), Limits()).encoded)


@pytest.mark.parametrize("text", ["plain", "«secret", "a «b» c", "cjv1", "cjv1.x", 1, None])
def test_what_holds_no_secret_is_told_quickly(text: Any) -> None:
    assert not holds_secrets({"a": [text]})
    assert holds_secrets({"a": [text, {"b": "x «secret t1/a"}]})
    assert holds_secrets({"«secret ": 1})
