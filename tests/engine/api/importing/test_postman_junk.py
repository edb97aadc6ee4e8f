"""Anything in a collection's place, or in any place of one: an import that is sound, or one line that says why not."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.api.importing import Imported, import_document, import_postman
from events.errors import Refused
from tests.engine.api.importing.collections import SCHEMA, imported_collection
from tests.engine.api.importing.test_junk import JUNK, places
from tests.engine.api.importing.test_postman import environment, harbour

__all__ = ()

NAMES = st.sampled_from(
    (
        *("info", "schema", "item", "name", "request", "url", "method", "header", "body", "auth", "variable", "event"),
        *("raw", "host", "path", "query", "protocol", "port", "key", "value", "disabled", "type", "mode", "src", "id"),
        *("urlencoded", "formdata", "graphql", "file", "options", "language", "basic", "bearer", "apikey", "oauth2"),
        *("token", "username", "in", "variables", "operationName", "collection", "requests", "order", "contentType"),
    )
)
TEXTS = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        (
            *(
                "https://a.example/:id?x={{x}}&token=1#f",
                "{{x}}",
                "{{token}}",
                "{",
                "}}{{",
                ":",
                "a:b@c",
                "GET",
                "POST",
            ),
            *("raw", "graphql", "formdata", "urlencoded", "file", "bearer", "basic", "apikey", "oauth2", "noauth"),
            *('{"a": {{x}}, "b": "{{y}}", "token": "t"}', "query Q($a: [Int!]!) {b}", "Authorization", "Content-Type"),
            *("application/json", "multipart/form-data", "text/xml", "\ue0000\ue001", "x" * 300, "\x00", "\ud7ff"),
        )
    ),
)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TEXTS)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES | TEXTS, inner, max_size=6),
    max_leaves=25,
)
URLS = st.sampled_from(
    ("https://a.example/:id/{{x}}?x={{x}}&token=1", "{{base}}/x", {"host": ["{{base}}"], "path": [":id"], "query": []})
)
ENTRIES = st.lists(
    st.fixed_dictionaries({"key": TEXTS}, optional={"value": SCALARS, "disabled": st.booleans(), "type": TEXTS}),
    max_size=4,
)
BODIES = st.one_of(
    st.fixed_dictionaries({"mode": st.just("raw"), "raw": TEXTS}),
    st.fixed_dictionaries(
        {"mode": st.just("raw"), "raw": VALUES.map(lambda value: msgspec.json.encode(value).decode())}
    ),
    st.fixed_dictionaries(
        {"mode": st.just("graphql"), "graphql": st.fixed_dictionaries({"query": TEXTS, "variables": TEXTS})}
    ),
    *(st.fixed_dictionaries({"mode": st.just(mode), mode: ENTRIES}) for mode in ("urlencoded", "formdata", "file")),
)
AUTHS = st.sampled_from(("basic", "bearer", "apikey", "oauth2")).flatmap(
    lambda kind: st.fixed_dictionaries({"type": st.just(kind), kind: ENTRIES | VALUES})
)
REQUESTS = st.fixed_dictionaries(
    {"url": URLS | VALUES},
    optional={
        "method": st.sampled_from(("GET", "post", "PUT")) | TEXTS,
        "header": ENTRIES | VALUES,
        "auth": AUTHS | VALUES,
        "body": BODIES | VALUES,
    },
)
ITEMS = st.fixed_dictionaries({"request": REQUESTS | VALUES}, optional={"name": VALUES, "event": VALUES})
FOLDERS = st.fixed_dictionaries({"item": st.lists(ITEMS, max_size=3)}, optional={"auth": AUTHS, "variable": ENTRIES})
BASE = st.just([{"key": "base", "value": "b.example"}, {"key": "token", "value": "{{x}}"}])
COLLECTIONS = st.fixed_dictionaries(
    {"info": st.just({"name": "n", "schema": SCHEMA.format("2.1.0")}), "item": st.lists(ITEMS | FOLDERS, min_size=1)},
    optional={"auth": AUTHS | VALUES, "variable": BASE | ENTRIES | VALUES},
)


def imported_or_said(read: Callable[[], Imported]) -> Imported | str:
    """Return what was imported, or the one refusal that there may be."""
    try:
        return read()
    except Refused as error:
        return str(error)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(content=COLLECTIONS, values=st.none() | ENTRIES.map(lambda listed: {"values": listed}) | VALUES)
def test_arbitrary_json_is_imported_or_refused(content: Any, values: Any) -> None:
    result = imported_or_said(partial(imported_collection, content, environment=values))
    assert isinstance(result, Imported) or (result and "\n" not in result)


@settings(max_examples=100, deadline=None)
@given(content=VALUES)
def test_arbitrary_json_is_no_collection(content: Any) -> None:
    assert isinstance(imported_or_said(partial(imported_collection, content)), str)


@settings(max_examples=100, deadline=None)
@given(text=st.text(max_size=200) | st.binary(max_size=200))
def test_arbitrary_text_is_refused(text: str | bytes) -> None:
    for read in (import_postman, import_document):
        result = imported_or_said(partial(read, text))
        assert isinstance(result, str)
        assert "\n" not in result


def test_junk_anywhere_breaks_one_request_at_most() -> None:
    chance = random.Random(7)
    for version in ("2.0.0", "2.1.0"):
        whole = harbour(version)
        for number in range(len(list(places(whole)))):
            spoilt = copy.deepcopy(whole)
            container, key = list(places(spoilt))[number]
            container[key] = chance.choice(JUNK)
            values = environment("http://127.0.0.1:1")
            result = imported_or_said(partial(imported_collection, spoilt, environment=values))
            assert result.actions if isinstance(result, Imported) else "\n" not in result


def test_much_of_anything_takes_no_long_time_and_ends_in_a_line() -> None:
    many = [{"name": "a", "request": {"url": f"{{{{v{number % 15}}}}}.example"}} for number in range(5000)]
    laughs = [{"key": f"v{n}", "value": f"{{{{v{n + 1}}}}}" * 10 if n < 15 else "ha" * 50} for n in range(16)]
    content = {"info": {"schema": SCHEMA.format("2.1.0")}, "item": many, "variable": laughs}
    result = import_postman(msgspec.json.encode(content))
    assert len(result.skipped) > 4000
