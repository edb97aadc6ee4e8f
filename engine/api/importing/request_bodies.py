"""Request bodies: of several content types one is chosen, and an object's properties become arguments of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from engine.api.importing.argument_names import Argument
from engine.api.importing.file_argument import file_schema
from engine.api.importing.imported import Unimportable
from engine.api.importing.keywords import shortened
from engine.api.importing.object_bodies import ObjectBody, object_body
from engine.api.importing.schemas import Schemas, Written
from engine.api.media import FORM, JSON, MULTIPART, MediaType
from engine.refusals import quoted

__all__ = ("ReadBody", "chosen_type", "read_body")

_WHOLE = "body"


class _RequestBody(msgspec.Struct):
    content: dict[str, Any]
    required: bool = False
    description: Any = None


class _Encoding(msgspec.Struct, frozen=True):
    content_type: str | None = msgspec.field(name="contentType", default=None)
    style: str | None = None
    explode: bool | None = None


class ReadBody(msgspec.Struct, frozen=True):
    """What a request body amounts to.

    :ivar content_type: None: application/json
    :ivar root: the outermost element of an XML body
    :ivar dependent: names on the wire that must be given as soon as any part of the body is
    :ivar either: lists of names on the wire, of which one list at least must be given whole
    """

    arguments: tuple[Argument, ...] = ()
    content_type: str | None = None
    root: str | None = None
    dependent: tuple[str, ...] = ()
    either: tuple[tuple[str, ...], ...] = ()


def chosen_type(content_types: list[str]) -> str:
    """Return the content type to send: JSON first, then a form, multipart, text, XML, else the first (API-12)."""
    return min(content_types, key=_rank)


def _rank(content_type: str) -> int:
    media = MediaType.of(content_type)
    if media.name == JSON or content_type.strip() in ("*/*", "application/*"):
        return 0
    if media.is_json:
        return 1
    if media.name in (FORM, MULTIPART):
        return 2 if media.name == FORM else 3
    if media.name == "text/plain":
        return 4
    if media.is_xml:
        return 5
    return 6 if media.name else 7


def read_body(stated: Any, schemas: Schemas) -> ReadBody:
    """Return the arguments of a request body.

    An object's properties are arguments of their own. A body of another kind, one that is a choice between several,
    and one of any properties is one argument, which is sent as it is; so is a body of unknown schema.

    :raises Unimportable: if it cannot be said, with the reason
    """
    stated = schemas.references.followed(stated)
    try:
        body = msgspec.convert(stated, _RequestBody, strict=False)
    except msgspec.ValidationError as error:
        raise Unimportable(f"its request body is not valid: {error}") from None
    if not body.content:
        return ReadBody()
    chosen = chosen_type(list(body.content))
    media = MediaType.of(JSON if "*" in chosen else chosen)
    if not media.name:
        raise Unimportable(f"its request body has the content type {quoted(chosen)}")
    content = schemas.references.followed(body.content[chosen])
    content = content if isinstance(content, dict) else {}
    declared = None if media.name == JSON and ("*" in chosen or ";" not in chosen) else chosen
    node = content.get("schema")
    is_form = media.name in (FORM, MULTIPART)
    parts = None if _is_bytes(node, media, schemas) else object_body(node, schemas.references, merge_choices=is_form)
    root = _root(node, schemas) if media.is_xml else None
    if parts is None:
        return ReadBody((_whole(node, body, media, schemas),), declared, root)
    encoding = content.get("encoding")
    encoding = encoding if is_form and isinstance(encoding, dict) else {}
    arguments = tuple(_fields(parts, encoding, media, schemas, is_required=body.required))
    if body.required:
        return ReadBody(arguments, declared, root, either=parts.either)
    return ReadBody(arguments, declared, root, dependent=parts.required)


def _is_bytes(node: Any, media: MediaType, schemas: Schemas) -> bool:
    if media.is_json or media.is_xml or media.is_text or media.name == MULTIPART:
        return False
    node = schemas.references.followed(node)
    return not isinstance(node, dict) or node.get("type", "string") == "string"


def _whole(node: Any, body: _RequestBody, media: MediaType, schemas: Schemas) -> Argument:
    if _is_bytes(node, media, schemas):
        about = _said(body.description) or f"The body, of type {media.name}."
        text = {"type": "string", "format": "binary", "description": shortened(f"Base64. {about}")}
        written = Written(text)
    else:
        written = schemas.written(node)
        if (about := _said(body.description)) and "description" not in written.schema:
            written = _changed(written, description=shortened(about))
    return Argument(where="body", name=_WHOLE, written=written, required=body.required, whole=True)


def _said(text: Any) -> str:
    return text.strip() if isinstance(text, str) else ""


def _fields(
    parts: ObjectBody, encoding: dict[str, Any], media: MediaType, schemas: Schemas, *, is_required: bool
) -> Iterator[Argument]:
    for name, node in parts.properties.items():
        # What a form's field is shows at its top: a file, a list.
        written = schemas.written(node if media.is_json else schemas.references.followed(node))
        rule = _rule(name, encoding)
        if media.name == MULTIPART:
            written, is_file = _as_file(written, rule)
            rule |= {"file": True} if is_file else {}
        wire = _xml_name(node) if media.is_xml else None
        yield Argument(
            where="body",
            name=wire or name,
            written=written,
            required=is_required and name in parts.required,
            encoding_json=rule,
        )


def _rule(name: str, encoding: dict[str, Any]) -> dict[str, Any]:
    if name not in encoding:
        return {}
    try:
        rule = msgspec.convert(encoding[name], _Encoding, strict=False)
    except msgspec.ValidationError as error:
        raise Unimportable(f"the encoding of {quoted(name)} in its body is not valid: {error}") from None
    # Of several types the first; of a range of them none in particular.
    first = (rule.content_type or "").partition(",")[0].strip()
    content_type = first if MediaType.of(first).name and "*" not in first else None
    stated = {"style": rule.style, "explode": rule.explode, "contentType": content_type}
    return {key: item for key, item in stated.items() if item is not None}


def _as_file(written: Written, rule: dict[str, Any]) -> tuple[Written, bool]:
    """Return the schema of a multipart field, as a file's where it is one, and whether it is."""
    schema = written.schema
    is_list = schema.get("type") == "array" and isinstance(schema.get("items"), dict)
    item = schema["items"] if is_list else schema
    kinds = item.get("type", "string")
    media = MediaType.of(rule.get("contentType") or item.get("contentMediaType"))
    is_file = "string" in kinds and (
        item.get("format") == "binary"
        or item.get("contentEncoding") == "base64"
        or bool(media.name and not (media.is_json or media.is_xml or media.is_text))
    )
    if not is_file:
        return written, False
    file = file_schema(_said(item.get("description")))
    return _changed(written, items=file) if is_list else msgspec.structs.replace(written, schema=file), True


def _changed(written: Written, **keywords: Any) -> Written:
    return msgspec.structs.replace(written, schema={**written.schema, **keywords})


def _xml_name(node: Any) -> str | None:
    xml = node.get("xml") if isinstance(node, dict) else None
    if not isinstance(xml, dict):
        return None
    name = xml.get("name")
    if not isinstance(name, str) or not name:
        return None
    return f"@{name}" if xml.get("attribute") is True else name


def _root(node: Any, schemas: Schemas) -> str | None:
    """Return the name of a body's outermost element: as it says, else that of the schema."""
    reference = node.get("$ref") if isinstance(node, dict) else None
    last = reference.rpartition("/")[2] if isinstance(reference, str) else None
    return _xml_name(schemas.references.followed(node)) or last
