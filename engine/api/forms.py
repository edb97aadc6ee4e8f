"""Forms: urlencoded text, and multipart with files (CASES API-12)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import msgspec

from engine.api.files import File
from engine.api.headers import header_value
from engine.api.media import JSON, MediaType
from engine.api.operation import EncodingRule
from engine.api.query import Pair, own_pairs, pairs_of, urlencoded
from engine.api.wording import json_text, text_of
from engine.api.xml import xml_text
from engine.refusals import quoted
from events.errors import Refused

__all__ = ("Multipart", "form_text", "multipart")

_NO_RULE: Final = EncodingRule()


class Multipart(msgspec.Struct, frozen=True):
    """A multipart body and its Content-Type, which names the boundary."""

    content: bytes
    content_type: str


class _Part(msgspec.Struct, frozen=True):
    name: str
    content: bytes
    filename: str | None = None
    content_type: str | None = None


def form_text(values: Mapping[str, Any], rules: Mapping[str, EncodingRule]) -> str:
    """Return fields as application/x-www-form-urlencoded: nulls left out, lists repeated, an object as JSON text.

    A rule's ``contentType`` says how its field is written; else its style does, as in a query.

    :raises Refused: if a field cannot be written by its rule
    """
    written: list[Pair] = []
    for name, value in values.items():
        written += own_pairs(name, _pairs(name, value, rules.get(name, _NO_RULE)), values)
    return urlencoded(written)


def _pairs(name: str, value: Any, rule: EncodingRule) -> Iterator[Pair]:
    if value is None:
        return
    if rule.written_type is not None and rule.style is None:
        yield Pair(name, (_typed(name, value, rule.written_type).decode(),))
    elif isinstance(value, dict) and rule.style is None:
        yield Pair(name, (json_text(value),))
    else:
        yield from pairs_of(name, value, rule.style, rule.explode)


def multipart(values: Mapping[str, Any], rules: Mapping[str, EncodingRule], files: Collection[str]) -> Multipart | None:
    """Return fields as multipart/form-data; None if nothing is left of them.

    Nulls are left out, a list becomes a part for each item, an object one part of application/json; fields in
    ``files``, or whose rule says so, are files. Names cannot add a header to a part.

    :raises Refused: if a field cannot be written so
    """
    import httpx

    parts = [
        part for name, value in values.items() for part in _parts(name, value, rules.get(name, _NO_RULE), name in files)
    ]
    if not parts:
        return None
    form = [(part.name, (part.filename, part.content, part.content_type)) for part in parts]
    request = httpx.Request("POST", "http://form.invalid", files=form)
    return Multipart(request.read(), request.headers["content-type"])


def _parts(name: str, value: Any, rule: EncodingRule, is_file: bool) -> Iterator[_Part]:
    for item in value if isinstance(value, list) else [value]:
        if item is None:
            continue
        if is_file or rule.file:
            file = File.of(name, item)
            # A part without a file name is no file to most servers.
            yield _Part(name, file.content, file.filename or name, _checked(file.content_type or rule.written_type))
        elif rule.written_type is not None:
            yield _Part(name, _typed(name, item, rule.written_type), None, _checked(rule.written_type))
        elif isinstance(item, (dict, list)):
            yield _Part(name, json_text(item).encode(), None, JSON)
        else:
            yield _Part(name, text_of(item).encode())


def _checked(content_type: str | None) -> str | None:
    """Return a part's content type. :raises Refused: if it could add a header to the part"""
    return content_type and header_value("Content-Type", content_type)


def _typed(name: str, value: Any, content_type: str) -> bytes:
    media = MediaType.of(content_type)
    if media.is_json:
        return json_text(value).encode()
    if media.is_xml:
        return xml_text(value, name).encode()
    if isinstance(value, (dict, list)):
        raise Refused(f"Parameter {quoted(name)} cannot be written as {media.name or content_type}.")
    return text_of(value).encode()
