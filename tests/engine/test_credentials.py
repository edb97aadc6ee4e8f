"""Credentials: sealed for one owner and row, opened by nobody else, and never an empty result instead of an error."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from engine.credentials import CredentialsError, MasterKeys, Vault, key_id

__all__ = ()

CANARY = "canary-5e41"
SECRETS: dict[str, Any] = {"api_key": CANARY, "nested": {"é": [1, None, 2.5]}}
ONE = MasterKeys("k1", {"k1": b"1" * 32})


def vault(keys: MasterKeys = ONE) -> Vault:
    return Vault(keys)


def sealed(**other: Any) -> str:
    text = vault().seal(SECRETS, **{"owner": "alice", "row_id": "t1", **other})
    assert text is not None
    return text


def test_behaviour_132_sealed_twice_is_two_texts_and_both_open() -> None:
    first, second = sealed(), sealed()
    assert first != second
    assert CANARY not in first + second
    assert [vault().open(text, owner="alice", row_id="t1") for text in (first, second)] == [SECRETS, SECRETS]
    assert first.startswith("cj1.k1.")
    assert key_id(first) == "k1"


def test_behaviour_132_no_credentials_store_nothing() -> None:
    assert vault().seal({}, owner="alice", row_id="t1") is None


@pytest.mark.parametrize(
    ("owner", "row_id"),
    [("bob", "t1"), (None, "t1"), ("", "t1"), ("alice", "t2"), ("alice\0", "t1"), ("null", "t1")],
)
def test_behaviour_132_another_owner_or_row_is_an_error(owner: str | None, row_id: str) -> None:
    with pytest.raises(CredentialsError) as caught:
        vault().open(sealed(), owner=owner, row_id=row_id)
    assert CANARY not in str(caught.value)
    assert "t1" not in str(caught.value)


def test_nobody_is_an_owner_of_their_own() -> None:
    text = sealed(owner=None)
    assert vault().open(text, owner=None, row_id="t1") == SECRETS
    for other in ("", "None", "null"):
        with pytest.raises(CredentialsError):
            vault().open(text, owner=other, row_id="t1")


def test_every_change_of_a_sealed_text_is_noticed() -> None:
    text = sealed()
    form, name, encoded = text.split(".")
    content = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
    for place in range(len(content)):
        changed = content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]
        with pytest.raises(CredentialsError):
            vault().open(
                f"{form}.{name}.{base64.urlsafe_b64encode(changed).decode().rstrip('=')}", owner="alice", row_id="t1"
            )
    for broken in ("", "cj1", "cj1.k1.", "cj1.k1.AA", "cj2" + text[3:], "cjv1" + text[3:], text + "!", text[:-1], "é"):
        with pytest.raises(CredentialsError):
            vault().open(broken, owner="alice", row_id="t1")


def test_an_older_key_opens_and_the_current_one_seals() -> None:
    old, both = vault(), vault(MasterKeys("k2", {"k2": b"2" * 32, "k1": b"1" * 32}))
    text = sealed()
    assert both.open(text, owner="alice", row_id="t1") == SECRETS
    renewed = both.reseal(text, owner="alice", row_id="t1")
    assert renewed is not None
    assert key_id(renewed) == "k2" == both.current
    assert both.open(renewed, owner="alice", row_id="t1") == SECRETS
    assert both.reseal(renewed, owner="alice", row_id="t1") is None
    with pytest.raises(CredentialsError, match="k2"):
        old.open(renewed, owner="alice", row_id="t1")
    # The same id with other bytes is no key of this text.
    with pytest.raises(CredentialsError):
        vault(MasterKeys("k1", {"k1": b"x" * 32})).open(text, owner="alice", row_id="t1")


def test_a_key_that_somebody_added_since_is_found() -> None:
    found = [ONE]
    late = Vault(lambda: found[-1])
    assert late.open(sealed(), owner="alice", row_id="t1") == SECRETS
    newer = MasterKeys("k2", {"k2": b"2" * 32, "k1": b"1" * 32})
    text = vault(newer).seal(SECRETS, owner="alice", row_id="t1")
    assert text is not None
    found.append(newer)
    assert late.open(text, owner="alice", row_id="t1") == SECRETS


@pytest.mark.parametrize("value", ["", "pässword", 0, None, True, [1, {"a": "b"}], {"pin": 1234}])
def test_a_value_is_sealed_alike_each_time_and_for_one_row(value: Any) -> None:
    text = vault().seal_value(value, owner="alice", row_id="t1")
    assert text == vault().seal_value(value, owner="alice", row_id="t1")
    assert vault().open_value(text, owner="alice", row_id="t1") == value
    assert text != vault().seal_value(value, owner="alice", row_id="t2")
    for owner, row_id in (("bob", "t1"), ("alice", "t2")):
        with pytest.raises(CredentialsError):
            vault().open_value(text, owner=owner, row_id=row_id)
    with pytest.raises(CredentialsError):
        vault().open(text, owner="alice", row_id="t1")
    with pytest.raises(CredentialsError):
        vault().open_value(text[:-4] + "AAAA", owner="alice", row_id="t1")


def test_a_mark_fits_its_parts_under_any_key() -> None:
    mark = vault().mark("m:c1", "t1", "api_key")
    assert vault().is_mark(mark, "m:c1", "t1", "api_key")
    assert vault(MasterKeys("k2", {"k2": b"2" * 32, "k1": b"1" * 32})).is_mark(mark, "m:c1", "t1", "api_key")
    assert not vault(MasterKeys("k1", {"k1": b"2" * 32})).is_mark(mark, "m:c1", "t1", "api_key")
    assert not vault().is_mark(mark, "m:c2", "t1", "api_key")
    assert not vault().is_mark("é", "m:c1", "t1", "api_key")


def test_what_has_no_json_form_is_refused_without_showing_it() -> None:
    with pytest.raises(CredentialsError) as caught:
        vault().seal({"api_key": object(), "other": CANARY}, owner="alice", row_id="t1")
    assert CANARY not in str(caught.value)
    assert "object object" not in str(caught.value)


def test_neither_keys_nor_secrets_are_shown() -> None:
    assert repr(ONE) == "<MasterKeys k1>"
    assert "11" not in repr(vault())
