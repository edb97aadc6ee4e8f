"""Where a secret may hide in a text: as it is, as a URL or JSON has it, in base64 at any place, in Basic's header."""

from __future__ import annotations

import base64
import json
from functools import partial
from urllib.parse import quote, quote_plus, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.secret_forms import SecretForm, SecretForms

__all__ = ()

ODD = 'zq-7Hf2 é/+&"<secret>\n'


@pytest.mark.parametrize("secret", ["zq-7Hf2-secret", ODD, "pass", "ключ-от-дома", "a" * 4096])
def test_a_secret_is_found_in_each_of_its_forms(secret: str) -> None:
    forms = SecretForms({"api_key": secret})
    texts = (
        secret,
        f"https://host/?{urlencode({'k': secret})}",
        quote(secret, ""),
        quote(secret),
        quote(secret, "").lower() if secret.isascii() and secret.islower() else quote_plus(secret),
        json.dumps({"said": secret}),
        json.dumps({"said": secret}, ensure_ascii=False),
        base64.b64encode(secret.encode()).decode(),
        base64.urlsafe_b64encode(secret.encode()).decode(),
    )
    for text in texts:
        assert forms.stand_in(text)
        left = forms.replaced(text, lambda found: "«»")
        assert secret not in left
        # What is put back is what stood there, to the letter.
        assert forms.replaced(text, partial(put_back, forms)) == text


def put_back(forms: SecretForms, found: SecretForm) -> str:
    return forms.text_of(found.name, found.form) or ""


@given(before=st.binary(max_size=40), after=st.binary(max_size=40), url=st.booleans())
def test_base64_hides_no_secret_wherever_it_stands(before: bytes, after: bytes, url: bool) -> None:
    secret = "zq-7Hf2-secret"
    encode = base64.urlsafe_b64encode if url else base64.b64encode
    text = encode(before + secret.encode() + after).decode()
    replaced = SecretForms({"api_key": secret}).replaced(text, lambda found: "")
    # Of its 112 bits, at most the few at both ends that share a character with a neighbour stay.
    assert len(text) - len(replaced) >= len(secret) * 8 // 6 - 2


def test_basic_is_found_whole() -> None:
    forms = SecretForms({"username": "ada", "password": "hunter22"})
    header = "Basic " + base64.b64encode(b"ada:hunter22").decode()
    assert forms.replaced(header, lambda found: f"<{found.name}#{found.form}>") == "Basic <password#basic>"
    assert forms.text_of("password", "basic") == header.removeprefix("Basic ")


def test_secrets_within_others_have_names_of_their_own() -> None:
    forms = SecretForms(
        {"a": {"b": "first-one", "list": ["in a list", {"": "unnamed"}]}, "a.b": "second", "n": 12345678}
    )
    named = {
        text: forms.replaced(text, lambda found: found.name) for text in ("first-one", "in a list", "unnamed", "second")
    }
    assert named == {"first-one": "a.b", "in a list": "a.list.0", "unnamed": "a.list.1.", "second": "a.b_"}
    assert forms.text_of("a.b", "") == "first-one"
    assert forms.text_of("a.b_", "") == "second"


def test_short_values_and_no_credentials_are_no_secrets() -> None:
    for credentials in ({}, {"pin": "123", "flag": True, "none": None, "number": 12345678}):
        forms = SecretForms(credentials)
        assert not forms.stand_in("123 True None 12345678")
        assert forms.replaced("123", lambda found: "x") == "123"


def test_the_longer_of_two_secrets_goes_first() -> None:
    forms = SecretForms({"short": "token", "long": "token-and-more"})
    assert forms.replaced("token-and-more, token", lambda found: f"<{found.name}>") == "<long>, <short>"


def test_its_repr_shows_names_alone() -> None:
    assert repr(SecretForms({"api_key": "canary"})) == "<SecretForms of api_key>"
