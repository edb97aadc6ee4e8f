"""Documents as they come: JSON and YAML, with the traps of both; what cannot be read is said in one line."""

from __future__ import annotations

import time

import pytest

from engine.api.importing import import_openapi
from events.errors import Refused
from tests.engine.api.importing.documents import BASE, sound

YAML = f"""
openapi: 3.0
info: {{title: Bays, version: 1.10}}
servers: [{{url: {BASE}}}]
paths:
  /bays/{{id}}:
    get:
      operationId: act
      parameters:
        - {{name: id, in: path, required: true, schema: {{type: string}}}}
        - name: since
          in: query
          schema: &day {{type: string, default: 2024-02-30, enum: [no, on, off, 0777, 1:30, 2024-02-30]}}
        - {{name: until, in: query, schema: {{<<: *day, description: 2001-12-14t21:59:43.10-05:00}}}}
      responses:
        200: {{description: OK}}
"""


def test_yaml_is_read_as_json_would_be() -> None:
    properties = import_openapi(YAML).actions["act"]["query_params"]["properties"]
    values = ["no", "on", "off", "0777", "1:30", "2024-02-30"]
    assert properties["since"] == {"type": "string", "enum": values, "default": "2024-02-30"}
    assert properties["until"]["description"].startswith("2001-12-14t21")
    assert properties["until"]["enum"] == values


@pytest.mark.parametrize(
    "version", ["openapi: 3.0", "openapi: 3.1", "openapi: '3.1.2'", "swagger: 2.0", "swagger: '2.0'"]
)
def test_versions_may_be_numbers(version: str) -> None:
    sound(import_openapi(YAML.replace("openapi: 3.0", version), base_url=BASE))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_marks_of_an_encoding_are_seen(encoding: str) -> None:
    assert list(import_openapi(YAML.encode(encoding)).actions) == ["act"]
    assert list(
        import_openapi(b'\xef\xbb\xbf{"swagger": "2.0", "host": "a.b", "paths": {"/": {"get": {}}}}').actions
    ) == ["get"]


BOMB = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{', '.join(['*' + before] * 10)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
MERGES = (
    "a: &a {" + ", ".join(f"k{n}: 1" for n in range(1000)) + "}\n" + "".join(f"m{n}: {{<<: *a}}\n" for n in range(200))
)

UNREADABLE = [
    ("", "The document is empty."),
    (" \n\t ", "The document is empty."),
    (b"\xff\x00\xff", "is not text in UTF-8: byte 0"),
    ('{"openapi": "3.0.0",\n "paths" {}}', "not valid JSON: expected ':' (line 2, column 10)"),
    ("openapi: 3.0.0\npaths: [", "not valid YAML: did not find expected node content (line 3, column 1)"),
    ("a: b: c", "not valid YAML: mapping values are not allowed in this context (line 1, column 5)"),
    ("a: \x00", "not valid YAML"),
    ("a: !!python/object/apply:os.system [ls]", "not valid YAML: could not determine a constructor for the tag"),
    ("? [1, 2]\n: 3", "not valid YAML: a key must be plain text (line 1, column 3)"),
    ("just words", "The document is a string; an OpenAPI document is an object."),
    ("[1, 2]", "The document is an array; an OpenAPI document is an object."),
    ("{}", "neither openapi nor swagger"),
    ("openapi: 4.0.0", 'openapi: "4.0.0") is not known: 3.0, 3.1 and Swagger 2.0 are.'),
    ("swagger: 1.2", 'swagger: "1.2") is not known'),
    ("openapi: 3.1.0\nwebhooks: {a: {}}", "has no paths"),
    ("openapi: 3.0.0\npaths: {}", "has no paths"),
    ("openapi: 3.0.0\npaths: []", "has no paths"),
    ("a: &a [*a]", "contains itself"),
    (BOMB, "stand for far more than it says"),
    (MERGES, "stand for far more than it says"),
    ("[" * 100_000, "nested too deeply"),
    ("{a: " * 5_000, "not valid"),
    ('{"a":' * 100_000, "nested too deeply"),
    ("a:\n" + "".join(" " * n + "- \n" for n in range(1, 300)), "levels deep"),
    ("x" * (30 * 1024 * 1024 + 1), "larger than 30 MiB"),
]


@pytest.mark.parametrize(("text", "said"), UNREADABLE, ids=[said[:30] for _, said in UNREADABLE])
def test_what_cannot_be_read_is_said_in_one_line(text: str | bytes, said: str) -> None:
    started = time.perf_counter()
    with pytest.raises(Refused) as caught:
        import_openapi(text)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200
    assert time.perf_counter() - started < 5


def test_flow_yaml_that_looks_like_json_is_read() -> None:
    text = "{openapi: 3.0.0, servers: [{url: 'https://a.b'}], paths: {/x: {get: {}}}, }  # a comment"
    assert list(import_openapi(text).actions) == ["get_x"]
