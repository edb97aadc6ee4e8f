"""Bodies: a request's arguments written in the content type that the operation declares (CASES API-12)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from engine.api.files import File
from engine.api.forms import form_text, multipart
from engine.api.headers import header_value
from engine.api.media import FORM, JSON, MULTIPART, MediaType
from engine.api.operation import Operation
from engine.api.wording import json_text, text_of
from engine.api.xml import xml_text
from engine.refusals import quoted
from events.errors import Refused

__all__ = ("Body", "written_body")

_ABSENT: Final = object()


class Body(msgspec.Struct, frozen=True):
    """A body's bytes and their Content-Type."""

    content: bytes
    content_type: str


def written_body(operation: Operation, arguments: Mapping[str, Any]) -> Body | None:
    """Return the body that arguments make; None if there are none: then no body is sent at all.

    The content type stays as it is declared, but that multipart gets its boundary, and text beyond ASCII its charset.

    :raises Refused: if they cannot be written so
    """
    whole = _ABSENT if operation.body_whole is None else arguments.get(operation.body_whole, _ABSENT)
    if (operation.body_whole is not None and whole is _ABSENT) or not arguments:
        return None
    declared = operation.body_content_type or JSON
    media = MediaType.of(declared)
    header_value("Content-Type", declared)
    if not media.name:
        raise Refused(f"The action's body_content_type {quoted(declared)} is no media type.")
    fields = {_name(operation, argument): item for argument, item in arguments.items()} if whole is _ABSENT else whole
    if media.is_json:
        return Body(_encoded(json_text(fields), media), declared)
    if media.name in (FORM, MULTIPART):
        return _form(operation, media, declared, fields, dict(arguments) if whole is _ABSENT else fields)
    if media.is_xml:
        return Body(_encoded(xml_text(fields, operation.body_root, media.charset), media), declared)
    return _plain(operation, media, declared, fields)


def _name(operation: Operation, argument: str) -> str:
    wire = operation.wire.body.get(argument)
    return (wire and wire.name) or argument


def _form(operation: Operation, media: MediaType, declared: str, fields: Any, arguments: Any) -> Body | None:
    if not isinstance(fields, dict):
        raise Refused(f"A body of type {media.name} must be an object.")
    rules = operation.body_encoding_rules
    named = {name: rules[argument] for name, argument in zip(fields, arguments, strict=True) if argument in rules}
    if media.name == FORM:
        return Body(form_text(fields, named).encode("ascii"), declared) if fields else None
    files = {name for name, argument in zip(fields, arguments, strict=True) if argument in operation.files}
    parts = multipart(fields, named, files)
    return None if parts is None else Body(parts.content, parts.content_type)


def _plain(operation: Operation, media: MediaType, declared: str, fields: Any) -> Body:
    """Write what is one text or one file: a value alone as it is, several as lines ``name: value``."""
    several = operation.body_whole is None and len(fields) > 1
    single = fields if several or operation.body_whole is not None else next(iter(fields.values()))
    if media.is_bytes or (not media.is_text and operation.files):
        return Body(File.of(operation.body_whole or "body", single).content, declared)
    if not media.is_text and not isinstance(single, str):
        raise Refused(f"A body of type {media.name} must be one text.")
    if several:
        single = "\n".join([f"{name}: {text_of(item)}" for name, item in fields.items() if item is not None])
    text = text_of(single)
    if media.charset is None and not text.isascii():
        declared = f"{declared}; charset=utf-8"
    return Body(_encoded(text, media), declared)


def _encoded(text: str, media: MediaType) -> bytes:
    charset = media.charset or "utf-8"
    try:
        return text.encode(charset)
    except LookupError:
        raise Refused(f"The action's charset {quoted(charset)} is not known.") from None
    except UnicodeEncodeError:
        raise Refused(f"The body has characters that {charset}, the action's charset, does not have.") from None
