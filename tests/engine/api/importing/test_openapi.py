"""Operations become actions: names, servers, security, approval; what cannot is skipped with its reason."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.api.importing import Skipped, import_openapi
from engine.api.importing.action_names import Call, action_names
from engine.api.row_config import problems_of
from events.errors import Refused
from tests.engine.api.importing.documents import BASE, body_of, document, imported, operation, parameter, sent

METHODS = ("get", "head", "post", "put", "patch", "delete", "options")


def test_approval_effect_and_idempotence_follow_the_method() -> None:
    result = imported(document({"/bays": {method: {} for method in (*METHODS, "trace")}}))
    stated = {
        action["method"]: (action["require_approval"], action["effect"], action["idempotent"])
        for action in result.actions.values()
    }
    assert stated == {
        "GET": (False, "read", True),
        "HEAD": (False, "read", True),
        "POST": (True, "write", False),
        "PUT": (True, "write", True),
        "PATCH": (True, "write", False),
        "DELETE": (True, "destroy", True),
        "OPTIONS": (True, "write", False),
    }
    assert result.skipped == (Skipped("TRACE /bays", "the method TRACE is not supported"),)


def test_names_are_ids_or_slugs_distinct_and_independent_of_order() -> None:
    long = "report_vibration_of_bearing_assembly_on_primary_shaft_per_minute_averaged_v"
    calls = [
        Call("get", "/a", "bays/list.all"),
        Call("get", "/v1/bays/{id}"),
        Call("get", "/"),
        Call("get", "/b", "same"),
        Call("post", "/b", "same"),
        Call("get", "/c", long + "1"),
        Call("get", "/c", long + "2"),
        Call("get", "/d", "Ø"),
        Call("get", "/Ø/x"),
        Call("get", "/e", "a.b"),
        Call("get", "/f", "a b"),
    ]
    names = action_names(calls)
    assert names[:3] == ["bays_list_all", "get_v1_bays_id", "get"]
    assert [name.rpartition("_")[0] for name in names[3:5]] == ["same", "same"]
    assert [len(name) for name in names[5:7]] == [64, 64]
    assert names[7] == "get_d"
    assert len(set(names)) == len(names)
    assert dict(zip(reversed(calls), action_names(reversed(calls)), strict=True)) == dict(
        zip(calls, names, strict=True)
    )


def test_descriptions_are_summary_and_text_cut_to_500() -> None:
    paths = {
        "/a": {"get": {"summary": "List bays", "description": "x" * 600, "deprecated": True}},
        "/b": {"summary": "Of the path", "get": {}},
        "/c": {"get": {"summary": "List", "description": "List the bays"}},
    }
    described = [action["description"] for action in imported(document(paths)).actions.values()]
    assert described[0].startswith("(deprecated) List bays\nxxx")
    assert (len(described[0]), described[0][-3:]) == (500, "...")
    assert described[1:] == ["Of the path", "List the bays"]


SERVERS = [
    (
        [{"url": "https://{region}.api.example/{v}", "variables": {"region": {"default": "eu"}, "v": {"enum": [2]}}}],
        None,
        "https://eu.api.example/2/x",
    ),
    ([{"url": "https://{tenant}.example"}, {"url": "https://b.example/"}], None, "https://b.example/x"),
    ([{"url": "wss://a.example"}, {"url": "https://b.example"}], None, "https://b.example/x"),
    ([{"url": "//a.example/v2"}], None, "https://a.example/v2/x"),
    ([{"url": "/v2/"}], "https://c.example/docs/openapi.json", "https://c.example/v2/x"),
    ([{"url": "/"}], "https://c.example/v3", "https://c.example/v3/x"),
    ([], "https://c.example/v3/", "https://c.example/v3/x"),
    (None, "https://c.example/v3", "https://c.example/v3/x"),
    ([{"url": "https://{tenant}.example"}], "http://c.example:8080", "http://c.example:8080/x"),
    ([{"url": "/v2"}], None, 'its server\'s URL "/v2" is relative: give base_url'),
    (None, None, "the document names no server: give base_url"),
    (
        [{"url": "https://{tenant}.example"}],
        None,
        'its server\'s URL has the variable "tenant" without a default: give base_url',
    ),
    ([{"url": "ftp://a.example"}], None, 'its server\'s URL has the scheme "ftp"; http and https are supported'),
    (
        [{"url": "https://me:hush@a.example"}],
        None,
        "its server's URL carries a user name or password: give it as a credential",
    ),
    ([{"uri": "https://a.example"}], None, "its server is not valid: Object missing required field `url`"),
]


@pytest.mark.parametrize(("servers", "base_url", "expected"), SERVERS)
def test_servers(servers: object, base_url: str | None, expected: str) -> None:
    result = imported(document({"/x": {"get": operation()}}, servers=servers), base_url=base_url)
    if expected.startswith("http"):
        assert result.actions["act"]["url"] == expected
        assert result.base_url == expected.removesuffix("/x")
    else:
        assert result.skipped == (Skipped("GET /x", expected),)
        assert result.base_url == ""


def test_the_innermost_servers_count_and_base_url_must_be_one() -> None:
    own = [{"url": "https://op.example"}]
    paths = {
        "/x": {"servers": [{"url": "https://path.example"}], "get": {}, "put": {"servers": own}},
        "/y": {"get": {}},
    }
    urls = [action["url"] for action in imported(document(paths)).actions.values()]
    assert urls == ["https://path.example/x", "https://op.example/x", f"{BASE}/y"]
    with pytest.raises(Refused, match="base_url has the scheme"):
        import_openapi("openapi: 3.0.0", base_url="file:///etc/passwd")


SCHEMES = {
    "Key": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "Ask for one."},
    "inQuery": {"type": "apiKey", "in": "query", "name": "key"},
    "sid": {"type": "apiKey", "in": "cookie", "name": "sid"},
    "Basic": {"type": "http", "scheme": "Basic"},
    "Bearer": {"type": "http", "scheme": "bearer"},
    "oauth": {"type": "oauth2", "flows": {}},
    "open": {"type": "openIdConnect", "openIdConnectUrl": "https://a.b"},
    "digest": {"type": "http", "scheme": "digest"},
    "mtls": {"type": "mutualTLS"},
    "elsewhere": {"$ref": "#/components/securitySchemes/Key"},
    "broken": {"type": "apiKey", "in": "body", "name": "x"},
}
KEY = {"secret": "key", "in": "header", "name": "X-API-Key"}


ALTERNATIVES: dict[str, tuple[list[dict[str, list[str]]] | None, list[dict[str, str]] | str | None]] = {
    "default": (None, None),
    "none": ([], []),
    "query": ([{"inQuery": []}], [{"secret": "in_query", "in": "query", "name": "key"}]),
    "both": ([{"sid": [], "Basic": []}], [{"secret": "sid", "in": "cookie", "name": "sid"}, {"in": "basic"}]),
    "bearer": ([{"Bearer": []}], [{"secret": "bearer", "in": "bearer"}]),
    "oauth": ([{"oauth": ["read"]}], [{"secret": "oauth", "in": "bearer"}]),
    "open": ([{"open": []}], [{"secret": "open", "in": "bearer"}]),
    "second": (
        [{"digest": []}, {"mtls": []}, {"elsewhere": []}],
        [{"secret": "elsewhere", "in": "header", "name": "X-API-Key"}],
    ),
    "optional": ([{}, {"Key": []}], []),
    "same_header": ([{"Basic": [], "Bearer": []}], [{"in": "basic"}]),
    "digest": ([{"digest": []}], 'it needs HTTP authentication "digest" (digest), which is not supported'),
    "unknown": ([{"nowhere": []}], 'it needs the security scheme "nowhere", which the document does not define'),
    "broken": ([{"broken": []}], 'the security scheme "broken" is in "body"'),
}
"""What an operation says of its security, and what comes of it: injections, or the reason why it is skipped."""


def test_security_schemes_become_injections_and_requirements() -> None:
    paths = {
        f"/{name}": {"get": {"operationId": name} | ({} if stated is None else {"security": stated})}
        for name, (stated, _) in ALTERNATIVES.items()
    }
    result = imported(document(paths, security=[{"Key": []}], components={"securitySchemes": SCHEMES}))
    assert result.config["security"] == [KEY]
    said = {name: action.get("security") for name, action in result.actions.items()}
    said |= {skipped.operation.removeprefix("GET /"): skipped.reason for skipped in result.skipped}
    assert said == {name: expected for name, (_, expected) in ALTERNATIVES.items()}
    assert all(stated["secret"] and not stated["required"] for stated in result.requirements.values())
    assert list(result.requirements)[:4] == ["key", "in_query", "sid", "username"]


def test_credentials_are_for_the_document_s_server_and_others_are_listed() -> None:
    scheme: dict[str, Any] = {"security": [{"Key": []}], "components": {"securitySchemes": SCHEMES}}
    paths = {
        "/own": {"get": {"operationId": "own"}},
        "/files": {"servers": [{"url": "https://files.example/up"}], "get": {}},
        "/other": {"post": {"servers": [{"url": "{s}://h.example", "variables": {"s": {"default": "http"}}}]}},
        "/open": {"get": {"servers": [{"url": "https://open.example"}], "security": []}},
        "/same": {"get": {"servers": [{"url": "https://API.example:443/v2"}]}},
    }
    result = imported(document(paths, **scheme))
    assert result.config["trusted_origins"] == ["https://api.example"]
    assert {each.operation: each.reason.partition(";")[0] for each in result.withheld} == {
        "GET /up/files": "it would send the credentials to https://files.example",
        "POST /other": "it would send the credentials to http://h.example",
    }
    alone = imported(document({"/files": paths["/files"]}, servers=[], **scheme))
    assert (alone.trusted_origins, alone.withheld) == (("https://files.example",), ())
    several = {key: paths[key] for key in ("/files", "/other")}
    unsure = imported(document(several, servers=[], **scheme))
    assert (unsure.config["trusted_origins"], len(unsure.withheld)) == ([], 2)


def test_no_secret_is_called_as_a_setting_is() -> None:
    for name in ("url", "body", "security", "query_schema", "auth_credentials"):
        schemes = {name: {"type": "apiKey", "in": "header", "name": "X-Key"}}
        document: dict[str, Any] = {"openapi": "3.0.3", "servers": [{"url": "https://a.example"}]}
        document |= {
            "security": [{name: []}],
            "components": {"securitySchemes": schemes},
            "paths": {"/x": {"get": {"operationId": "act"}}},
        }
        made = import_openapi(json.dumps(document))
        assert made.config["security"] == [{"secret": f"{name}_2", "in": "header", "name": "X-Key"}]
        assert problems_of(made.config) == []


def test_a_secret_that_every_operation_needs_is_required() -> None:
    content = document({"/x": {"get": {}}}, security=[{"Key": []}], components={"securitySchemes": SCHEMES})
    assert imported(content).requirements == {
        "key": {"type": "string", "description": "Ask for one.", "required": True, "secret": True}
    }


def test_references_lead_anywhere_in_the_document_and_nowhere_else() -> None:
    paths = {
        "/a/{id}": {
            "parameters": [{"$ref": "#/components/parameters/id"}],
            "get": operation(parameters=[{"$ref": "#/paths/~1b/post/parameters/0"}]),
            "put": {"operationId": "put", "requestBody": {"$ref": "#/components/requestBodies/bay"}},
        },
        "/b": {"post": {"parameters": [parameter("q/~")]}},
        "/c": {"$ref": "#/components/pathItems/c"},
        "/d": {"$ref": "other.yaml#/d"},
        "/e": {"get": {"parameters": [{"$ref": "#/nowhere"}]}},
        "/f": {"$ref": "#/paths/~1f"},
        "/g": {"post": {"requestBody": body_of({"type": "array", "items": {"$ref": "https://evil.example/schema"}})}},
        "/h": {"get": "no object"},
        "/i": {"post": {"requestBody": body_of({"$ref": "#/components/schemas/Missing"})}},
        "relative": {"get": {}},
        "x-extension": {"get": {}},
    }
    components = {
        "parameters": {"id": {"$ref": "#/components/parameters/real"}, "real": parameter("id", "path")},
        "requestBodies": {"bay": body_of({"$ref": "#/components/schemas/a~1b"})},
        "schemas": {
            "a/b": {"type": "object", "properties": {"kg": {"$ref": "#/components/schemas/%C3%98%20re"}}},
            "Ø re": {"type": "integer"},
        },
        "pathItems": {"c": {"get": {"operationId": "c"}}},
    }
    result = imported(document(paths, "3.1.0", components=components))
    assert sent(result.actions["act"], {"id": "7", "q": "x"})[0] == "/v1/a/7?q%2F~=x"
    assert sent(result.actions["put"], {"id": "7", "kg": 3})[2] == '{"kg":3}'
    assert "c" in result.actions
    assert {skipped.operation: skipped.reason for skipped in result.skipped} == {
        "/d": 'it refers to another document, which is not fetched: "other.yaml#/d"',
        "GET /e": 'it refers to "#/nowhere", which is not in the document',
        "/f": 'its reference "#/paths/~1f" leads back to itself',
        "POST /g": 'it refers to another document, which is not fetched: "https://evil.example/schema"',
        "GET /h": "it is not an object",
        "POST /i": 'it refers to "#/components/schemas/Missing", which is not in the document',
        "relative": "it is not a path with an object under it",
    }


def test_one_document_always_gives_the_same() -> None:
    content = document({"/a": {"get": operation(), "post": operation()}, "/b": {"get": operation()}})
    assert imported(content) == imported(content)
