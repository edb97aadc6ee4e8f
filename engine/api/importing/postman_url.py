"""A collection's URLs, as text or in parts: the template that an operation has, and the queries beside it."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote_plus, urlsplit

import msgspec

from engine.api.importing.imported import Unimportable
from engine.api.importing.postman_entries import Entry, entries, entry_text
from engine.api.importing.postman_variables import Expanded, Variables
from engine.api.origins import stated_origin
from engine.refusals import kind_of_json, quoted
from events.errors import Refused

__all__ = ("ReadUrl", "read_pairs", "read_url")

_LONGEST = 8192
_ODD = re.compile(r"[^A-Za-z0-9_.-]+")
_PLACE = re.compile(r"\{([^{}]+)\}")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f]")


class ReadUrl(msgspec.Struct, frozen=True, kw_only=True):
    """A URL without its query.

    :ivar origin: scheme, host and port, as origins are compared
    :ivar path: with ``{name}`` for each variable in it
    :ivar user: ``name:password`` if it stands in the URL, with its variables
    :ivar variables: what the collection says of variables in the path, by name
    :ivar secrets: which variables of the path are secret ones of the collection, by name
    """

    origin: str
    path: str
    query: tuple[Entry, ...]
    user: str | None
    variables: dict[str, Entry]
    secrets: dict[str, str]

    def __repr__(self) -> str:
        return f"<ReadUrl {self.origin}{self.path}>"


def read_url(stated: Any, variables: Variables, base_url: str | None) -> ReadUrl:
    """Return what a request's URL amounts to.

    :param base_url: stands in for a scheme and host that are not known
    :raises Unimportable: if it cannot be called, with the reason
    """
    text, query, declared = _parts(stated)
    if len(text) > _LONGEST:
        raise Unimportable(f"its URL has more than {_LONGEST} characters")
    expanded = variables.expanded(text)
    template, secrets = _template(expanded)
    if _CONTROLS.search(template) or len(template) > _LONGEST:
        raise Unimportable(f"its URL has control characters, or more than {_LONGEST} characters")
    whole = template if "://" in template else f"http://{template}"
    try:
        parts = urlsplit(whole)
        _ = parts.port
    except ValueError:
        raise Unimportable("its URL is not valid") from None
    if parts.scheme not in ("http", "https"):
        raise Unimportable(f"its URL has the scheme {quoted(parts.scheme[:20])}; http and https are supported")
    user, at, host = parts.netloc.rpartition("@")
    scheme, path = parts.scheme, _with_variables(parts.path)
    if found := _PLACE.search(host):
        scheme, host, before = _known_host(found[1], found[1] in secrets, base_url)
        path = before + path
    if not host:
        raise Unimportable("its URL has no host")
    try:
        origin = stated_origin(f"{scheme}://{host}")
    except Refused:
        raise Unimportable("its URL has no host that can be called") from None
    return ReadUrl(
        origin=origin,
        path=path.replace(" ", "%20"),
        query=(*read_pairs(_as_references(parts.query)), *query),
        user=_as_references(user) if at else None,
        variables={_clean(each.name): each for each in declared},
        secrets=secrets,
    )


def read_pairs(text: str) -> list[Entry]:
    """Return the pairs of a query or a form that stands as text; a name alone has an empty value."""
    pairs = [each.partition("=") for each in text.split("&") if each]
    if len(pairs) > _LONGEST:
        raise Unimportable("its query has too many entries")
    return [Entry(name=unquote_plus(name), text=unquote_plus(value)) for name, _, value in pairs if name]


def _parts(stated: Any) -> tuple[str, list[Entry], list[Entry]]:
    """Return (text before the query, queries, variables of the path)."""
    if isinstance(stated, str):
        return _of_text(stated)
    if not isinstance(stated, dict):
        raise Unimportable(f"its URL is {kind_of_json(stated)}" if stated is not None else "it has no URL")
    declared = entries(stated.get("variable"), "list of path variables")
    host = _joined(stated.get("host"), ".")
    if not host:
        text, query, _ = _of_text(entry_text(stated.get("raw")))
        return text, _queries(stated) if isinstance(stated.get("query"), list) else query, declared
    protocol, port = entry_text(stated.get("protocol")), entry_text(stated.get("port"))
    start = f"{protocol.removesuffix('://')}://" if protocol else ""
    path = _joined(stated.get("path"), "/").removeprefix("/")
    return f"{start}{host}{f':{port}' if port else ''}/{path}", _queries(stated), declared


def _of_text(text: str) -> tuple[str, list[Entry], list[Entry]]:
    before, _, query = text.strip().partition("#")[0].partition("?")
    if not before:
        raise Unimportable("it has no URL")
    return before, read_pairs(query), []


def _queries(stated: dict[str, Any]) -> list[Entry]:
    listed = entries(stated.get("query"), "query")
    return [
        msgspec.structs.replace(each, name=unquote_plus(each.name), text=unquote_plus(each.text)) for each in listed
    ]


def _joined(stated: Any, between: str) -> str:
    if not isinstance(stated, list):
        return entry_text(stated)
    texts = [entry_text(each.get("value")) if isinstance(each, dict) else entry_text(each) for each in stated]
    return between.join(texts)


def _template(expanded: Expanded) -> tuple[str, dict[str, str]]:
    """Return the text with ``{name}`` for what is secret or not known, and the secret ones among these."""
    secrets: dict[str, str] = {}
    text = ""
    for piece in expanded.pieces:
        if not piece.name:
            text += piece.text or ""
            continue
        name = _clean(piece.name)
        text += f"{{{name}}}"
        if piece.is_secret:
            secrets[name] = piece.name
    return text, secrets


def _with_variables(path: str) -> str:
    """Return a path whose segments ``:name`` are ``{name}``."""
    segments = [
        f"{{{_clean(segment[1:])}}}" if segment.startswith(":") and segment[1:] else segment
        for segment in path.split("/")
    ]
    return "/".join(segments)


def _known_host(variable: str, is_secret: bool, base_url: str | None) -> tuple[str, str, str]:
    if is_secret:
        raise Unimportable(f"its host is the variable {quoted(variable)}, which is or sounds secret: rename it")
    if base_url is None:
        raise Unimportable(f"its host has the variable {quoted(variable)} without a value: give it, or base_url")
    parts = urlsplit(base_url)
    return parts.scheme, parts.netloc, parts.path.rstrip("/")


def _as_references(text: str) -> str:
    """Return a part of the template with its places as references to variables again."""
    return _PLACE.sub(lambda found: f"{{{{{found[1]}}}}}", text)


def _clean(name: str) -> str:
    return _ODD.sub("_", name).strip("_") or "value"
