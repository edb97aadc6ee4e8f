"""Bodies in the content type that an action declares (CASES API-12)."""

from __future__ import annotations

from base64 import b64encode, urlsafe_b64encode
from io import BytesIO
from typing import Any

import pytest
import xmltodict
from python_multipart import parse_form

from tests.engine.api.calls import built, refused, result_of_call
from tests.engine.api.raw_server import Received, raw_server

__all__ = ()

pytestmark = pytest.mark.anyio
ANY: dict[str, Any] = {}
FILE = {"type": "string", "format": "binary"}
FORM = "application/x-www-form-urlencoded"
PNG = b"\x89PNG\r\n\x1a\n\x00\xff\r\n--" + bytes(range(256))
GIVEN = {"bay": [1, 2], "note": "a&b c", "flag": True, "opt": None, "deep": {"x": 1}}


def action(content_type: str | None, properties: dict[str, Any], **rest: Any) -> dict[str, Any]:
    """Return an action whose body has these properties."""
    stated = {} if content_type is None else {"body_content_type": content_type}
    return {"method": "POST", "body": {"properties": properties}, **stated, **rest}


def body(content_type: str | None, given: dict[str, Any], schemas: dict[str, Any] | None = None, **rest: Any) -> bytes:
    """Return the body that arguments make."""
    return built(action(content_type, schemas or dict.fromkeys(given, ANY), **rest), given).content or b""


def problem(content_type: str, given: dict[str, Any], schemas: dict[str, Any] | None = None, **rest: Any) -> str:
    """Return why arguments make no body."""
    said = refused(action(content_type, schemas or dict.fromkeys(given, ANY), **rest), given)
    assert said.startswith("Body serialization error: ")
    return said


def test_case_api_12_urlencoded() -> None:
    assert body(FORM, GIVEN) == b"bay=1&bay=2&note=a%26b+c&flag=true&deep=%7B%22x%22%3A1%7D"
    rules: dict[str, Any] = {"bay": {"style": "form", "explode": False}}
    assert body(FORM, GIVEN, body_encoding_rules=rules).startswith(b"bay=1,2&note=a%26b+c&flag=true&deep=")
    for rule, sent in (
        ({"style": "deepObject"}, b"deep%5Bx%5D=1"),
        ({"style": "form"}, b"x=1"),
        ({"style": "form", "explode": False}, b"deep=x,1"),
        ({"contentType": "application/json"}, b"deep=%7B%22x%22%3A1%7D"),
        ({"contentType": "application/xml"}, b"deep=%3C%3Fxml+version%3D%221.0%22"),
    ):
        assert body(FORM, {"deep": {"x": 1}}, body_encoding_rules={"deep": rule}).startswith(sent)
    # One pass of encoding, names too; what is on the wire under another name; nothing left is no body.
    assert body(FORM, {"a b": "%41+é"}) == b"a+b=%2541%2B%C3%A9"
    assert body(FORM, {"a": [1]}, wire={"body": {"a": {"name": "a[]"}}}) == b"a%5B%5D=1"
    assert body(FORM, {"whole": {"x": [1, 2]}}, body_whole="whole") == b"x=1&x=2"
    assert "object" in problem(FORM, {"whole": [1]}, body_whole="whole")


def parts_of(received: Received) -> list[tuple[str, bytes, str | None]]:
    """Return (name, content, file name) of every part, as a real parser reads them."""
    parts: list[tuple[str, bytes, str | None]] = []

    def on_field(field: Any) -> None:
        parts.append((field.field_name.decode(), field.value or b"", None))

    def on_file(file: Any) -> None:
        file.file_object.seek(0)
        parts.append((file.field_name.decode(), file.file_object.read(), file.file_name.decode()))

    headers = {"Content-Type": (received.header("content-type") or "").encode()}
    parse_form(headers, BytesIO(received.body), on_field, on_file)
    return parts


async def test_case_api_12_multipart() -> None:
    properties = {"file": FILE, "meta": ANY, "tags": ANY, "two": ANY, "flag": ANY, "none": ANY, "all": {"items": FILE}}
    name = 'a"\r\nX: y.txt'
    given = {
        "file": {"content": b64encode(PNG).decode(), "filename": name, "content_type": "image/png"},
        "meta": {"k": True, "n": None},
        "tags": ["a", "b"],
        "two": "two",
        "flag": False,
        "none": None,
        "all": [urlsafe_b64encode(PNG).decode().rstrip("="), f"data:image/png;base64,{b64encode(b'2').decode()}"],
    }
    with raw_server() as server:
        await result_of_call({"url": server.origin, **action("multipart/form-data", properties)}, given)
        received = server.last
    boundary = (received.header("content-type") or "").partition("boundary=")[2]
    assert received.body.startswith(f"--{boundary}\r\n".encode())
    assert parts_of(received) == [
        ("file", PNG, "a%22%0D%0AX: y.txt"),
        ("meta", b'{"k":true,"n":null}', None),
        ("tags", b"a", None),
        ("tags", b"b", None),
        ("two", b"two", None),
        ("flag", b"false", None),
        ("all", PNG, "all"),
        ("all", b"2", "all"),
    ]
    heads = [part.partition(b"\r\n\r\n")[0] for part in received.body.split(f"--{boundary}".encode())[1:-1]]
    assert [head.count(b"\r\n") for head in heads] == [2, 2, 1, 1, 1, 1, 2, 2]
    assert b"Content-Type: application/json" in heads[1]
    assert received.body.count(b"Content-Type: image/png") == 2


def test_case_api_12_parts_by_rule() -> None:
    rules = {"f": {"file": True, "contentType": "image/*, image/png"}, "x": {"contentType": "application/xml"}}
    sent = body("multipart/form-data", {"f": "AAE=", "x": {"a": 1}}, body_encoding_rules=rules)
    assert b'filename="f"\r\nContent-Type: image/png\r\n\r\n\x00\x01\r\n' in sent
    assert b"Content-Type: application/xml\r\n\r\n<?xml" in sent
    form = "multipart/form-data"
    assert "base64" in problem(form, {"f": "no base64!"}, {"f": FILE})
    assert "base64" in problem(form, {"f": {"filename": "a"}}, {"f": FILE})
    assert "media type" in problem(form, {"f": {"content": "", "content_type": "x\r\ny"}}, {"f": FILE})
    assert "Content-Type" in problem(form, {"f": "x"}, body_encoding_rules={"f": {"contentType": "a/b;\r\nX: y"}})
    # A file behind a reference is one; nothing left is no body.
    group = {"properties": {"f": {"$ref": "#/$defs/F"}}, "$defs": {"F": FILE}}
    request = built({"method": "POST", "body_content_type": form, "body": group}, {"f": "AAE="})
    assert b"\x00\x01" in (request.content or b"")
    assert built(action(form, {"a": ANY}), {"a": None}).content is None


def test_case_api_12_json_types_stay_as_declared() -> None:
    for declared in (
        "application/json; charset=utf-8",
        "application/vnd.api+json",
        "application/merge-patch+json",
        "APPLICATION/JSON",
    ):
        request = built(action(declared, {"ü": ANY}), {"ü": [1.5, None, "é"]})
        assert dict(request.headers)["Content-Type"] == declared
        assert request.content == '{"ü":[1.5,null,"é"]}'.encode()
    assert dict(built(action(None, {"a": ANY}), {"a": 1}).headers)["Content-Type"] == "application/json"
    assert body("application/json; charset=iso-8859-1", {"a": "é"}) == '{"a":"é"}'.encode("latin-1")
    assert "iso-8859-1" in problem("application/json; charset=iso-8859-1", {"a": "日"})
    assert "bogus" in problem("application/json; charset=bogus", {"a": 1})
    assert "media type" in problem("json", {"a": 1})
    assert "Content-Type" in problem("application/json\r\nX: y", {"a": 1})


def test_text_bodies() -> None:
    for given, declared, sent in (
        ({"t": "a\r\nb"}, "text/plain", b"a\r\nb"),
        ({"t": "é"}, "text/plain; charset=iso-8859-1", b"\xe9"),
        ({"a": 1, "b": None, "c": True}, "text/plain", b"a: 1\nc: true"),
        ({"t": {"a": 1}}, "text/csv", b'{"a":1}'),
        ({"q": "{ me }"}, "application/graphql", b"{ me }"),
        ({"q": "x"}, "application/x-unheard-of", b"x"),
    ):
        request = built(action(declared, dict.fromkeys(given, ANY)), given)
        assert (request.content, dict(request.headers)["Content-Type"]) == (sent, declared)
    assert (
        dict(built(action("text/plain", {"t": ANY}), {"t": "é"}).headers)["Content-Type"] == "text/plain; charset=utf-8"
    )
    assert "one text" in problem("application/x-unheard-of", {"q": {"a": 1}})


def test_xml_bodies() -> None:
    given = {"name": "a<b & c", "flag": True, "none": None, "item": [1, 2], "@id": "q\"'"}
    sent = body("application/xml", given, body_root="dock")
    assert xmltodict.parse(sent) == {
        "dock": {"@id": "q\"'", "name": "a<b & c", "flag": "true", "none": None, "item": ["1", "2"]}
    }
    assert body("text/xml", {"x": "<raw/>"}, body_whole="x") == b"<raw/>"
    assert b"<root><item>1</item></root>" in body("application/soap+xml", {"x": [1]}, body_whole="x")
    for name in ("a b", "a><x", "1a", "", "a:b:c", "?php", "#comment", "!x"):
        assert "XML" in problem("application/xml", {"o": {name: 1}})
    assert "XML" in problem("application/xml", {"o": "\x01"})
    assert "XML" in problem("application/xml", {"o": 1}, body_root="a b")


def test_bytes_are_given_as_base64() -> None:
    packed = b64encode(PNG).decode()
    for declared in ("application/octet-stream", "image/png", "application/pdf"):
        assert body(declared, {"x": packed}) == PNG
        assert body(declared, {"x": {"content": packed}}, body_whole="x") == PNG
    assert body("application/x-own", {"x": packed}, {"x": FILE}) == PNG
    assert "base64" in problem("application/octet-stream", {"x": "no base64!"})
    assert "base64" in problem("application/octet-stream", {"x": "AA", "y": 1})
