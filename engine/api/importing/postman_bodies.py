"""Bodies of a collection's requests, in each of its modes: arguments, and the content type that is sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from engine.api.importing.argument_names import Argument
from engine.api.importing.file_argument import file_schema
from engine.api.importing.imported import Unimportable
from engine.api.importing.postman_entries import MOST_ENTRIES, Entry, entries, entry_text
from engine.api.importing.postman_fields import described_by, field_argument, json_argument
from engine.api.importing.postman_graphql import read_graphql
from engine.api.importing.postman_json import JsonTemplate
from engine.api.importing.postman_url import read_pairs
from engine.api.importing.postman_variables import Variables
from engine.api.importing.schemas import Written
from engine.api.media import FORM, JSON, MULTIPART, MediaType
from engine.refusals import kind_of_json, quoted

__all__ = ("PostmanBody", "read_postman_body")

_LONGEST = 262_144
_LANGUAGES = {
    "json": JSON,
    "xml": "application/xml",
    "html": "text/html",
    "javascript": "application/javascript",
    "text": "text/plain",
}


class PostmanBody(msgspec.Struct, frozen=True):
    """What a body amounts to.

    :ivar content_type: None: application/json
    :ivar dropped: paths of what is secret in it, and so not kept
    """

    arguments: tuple[Argument, ...] = ()
    content_type: str | None = None
    dropped: tuple[str, ...] = ()


def read_postman_body(stated: Any, header: str | None, variables: Variables) -> PostmanBody:
    """Return the arguments of a body.

    :param header: the request's own Content-Type
    :raises Unimportable: if it cannot be said, with the reason
    """
    if stated is None or (isinstance(stated, dict) and (stated.get("disabled") is True or not stated.get("mode"))):
        return PostmanBody()
    if not isinstance(stated, dict):
        raise Unimportable(f"its body is {kind_of_json(stated)}, not an object")
    match stated["mode"]:
        case "raw":
            return _raw(stated, header, variables)
        case "urlencoded":
            listed = stated.get("urlencoded")
            pairs = read_pairs(listed) if isinstance(listed, str) else entries(listed, "urlencoded body")
            return _form(pairs, FORM, header, variables)
        case "formdata":
            return _form(entries(stated.get("formdata"), "form"), MULTIPART, header, variables)
        case "graphql":
            read = read_graphql(stated.get("graphql"), variables)
            return PostmanBody(read.arguments, None, read.dropped)
        case "file":
            return _file(header)
    raise Unimportable(f"its body has the mode {quoted(entry_text(stated['mode'])[:40])}, which is not known")


def _raw(stated: dict[str, Any], header: str | None, variables: Variables) -> PostmanBody:
    text = stated.get("raw")
    if not isinstance(text, str) or not text.strip():
        return PostmanBody()
    content_type = header or _language(stated) or (JSON if text.lstrip().startswith(("{", "[")) else "text/plain")
    media = MediaType.of(content_type)
    if not media.name:
        raise Unimportable(f"its Content-Type {quoted(content_type[:100])} is no media type")
    if media.is_json:
        return _json(text, None if content_type == JSON else content_type, variables)
    if media.name == FORM:
        return _form(read_pairs(text), FORM, header, variables)
    if media.name == MULTIPART:
        raise Unimportable("its body is a multipart form written out, which is not read")
    if media.is_bytes:
        return _file(header)
    expanded = variables.expanded(text)
    if len(text) > _LONGEST or len(expanded.plain or "") > _LONGEST:
        raise Unimportable(f"its body is an example of more than {_LONGEST >> 10} KiB")
    schema: dict[str, Any] = {"type": "string"}
    if expanded.plain is not None:
        schema["value"] = expanded.plain
    elif not expanded.is_secret:
        schema["description"] = described_by("", text)
    argument = Argument(where="body", name="body", written=Written(schema), required=expanded.plain is None, whole=True)
    return PostmanBody((argument,), content_type, ("body",) if expanded.is_secret else ())


def _language(stated: dict[str, Any]) -> str | None:
    options = stated.get("options")
    raw = options.get("raw") if isinstance(options, dict) else None
    language = raw.get("language") if isinstance(raw, dict) else None
    return _LANGUAGES.get(language) if isinstance(language, str) else None


def _json(text: str, content_type: str | None, variables: Variables) -> PostmanBody:
    template = JsonTemplate(text, variables)
    content = template.content
    if not isinstance(content, dict) or not content or len(content) > MOST_ENTRIES:
        known = template.known("body", content)
        return PostmanBody((json_argument("body", known, whole=True),), content_type, known.dropped)
    parts = {name: template.known(name, item) for name, item in content.items()}
    arguments = tuple(json_argument(name, known) for name, known in parts.items())
    return PostmanBody(arguments, content_type, tuple(path for known in parts.values() for path in known.dropped))


def _form(listed: list[Entry], kind: str, header: str | None, variables: Variables) -> PostmanBody:
    arguments, dropped = [], []
    for named in _by_name(listed):
        if kind == MULTIPART and any(each.kind == "file" for each in named):
            arguments.append(_file_field(named))
            continue
        field = field_argument("body", named, variables)
        arguments.append(field.argument)
        dropped += [named[0].name] if field.is_secret else []
    own = header if header and kind == FORM and MediaType.of(header).name == FORM else kind
    return PostmanBody(tuple(arguments), own if arguments else None, tuple(dropped))


def _by_name(listed: Iterable[Entry]) -> Iterator[list[Entry]]:
    """Yield the entries of each name; those that are switched off count where there are no others."""
    names: dict[str, list[Entry]] = {}
    for each in listed:
        names.setdefault(each.name, []).append(each)
    for same in names.values():
        yield [each for each in same if not each.disabled] or same[:1]


def _file_field(named: list[Entry]) -> Argument:
    schema = file_schema(named[0].about)
    if len(named) > 1 or any(each.several for each in named):
        schema = {"type": "array", "items": schema}
    rule = {"contentType": named[0].content_type} if named[0].content_type else {}
    needed = not named[0].disabled
    return Argument(
        where="body", name=named[0].name, written=Written(schema), required=needed, encoding_json={**rule, "file": True}
    )


def _file(header: str | None) -> PostmanBody:
    media = MediaType.of(header or "application/octet-stream")
    if not media.name or media.name in (FORM, MULTIPART):
        raise Unimportable(f"its body is a file of the Content-Type {quoted((header or '')[:100])}")
    if media.is_json:
        schema: dict[str, Any] = {"description": "The body, in JSON."}
    elif media.is_text:
        schema = {"type": "string", "description": f"The body, of type {media.name}."}
    else:
        schema = {"type": "string", "format": "binary", "description": f"Base64. The body, of type {media.name}."}
    argument = Argument(where="body", name="body", written=Written(schema), required=True, whole=True)
    return PostmanBody((argument,), header or "application/octet-stream")
