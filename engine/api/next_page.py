"""Where the next page is: another query of the same request, or a link that leads nowhere else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final
from urllib.parse import parse_qs, parse_qsl, quote, unquote, unquote_plus, urlsplit

import msgspec
from msgspec.structs import replace

from engine.api.links import linked
from engine.api.operation import Operation, compiled
from engine.api.origins import origin_of
from engine.api.pages import ARGUMENT, Pages
from engine.api.request import LONGEST_URL, OutgoingRequest
from engine.api.response import UNAPPLIED
from engine.net.reply import Reply
from events.errors import Refused

__all__ = ("End", "following", "next_arguments", "searched")

_LONGEST_CURSOR: Final = 4096
_KINDS: Final[dict[str, type]] = {"integer": int, "number": float, "boolean": bool}
_WHERE: Final = "it leads out of what the action is configured for"


class End(msgspec.Struct, frozen=True):
    """There is no next page that could be read.

    :ivar note: why, where that is no matter of course
    """

    note: str = ""


def following(
    operation: Operation, request: OutgoingRequest, url: str, reply: Reply, content: Any, items: list[Any]
) -> OutgoingRequest | End:
    """Return the request for the page after one, without credentials as every request is.

    :param url: that was requested, its credentials included
    :param content: the reply's JSON
    :param items: those of the page
    """
    pages = operation.pages
    assert pages is not None
    if pages.by == "link":
        target = searched(pages.next, content) if pages.next else linked(reply, "next")
        return _linked(operation, pages, request, url, target) if target else End()
    if pages.by == "cursor":
        value = searched(pages.next, content)
        if value in (None, "", False):
            return End()
        if not _is_cursor(value):
            return End("What stands where the next cursor should be is none, so no further page was read.")
        return _within_length(_with_query(request, pages.parameter, str(value)))
    if not items or len(items) < pages.size:
        return End()
    stated = _number(request, pages.parameter)
    if stated is None:
        return End(f'The parameter "{pages.parameter}" is no number, so no further page was read.')
    start = stated if stated >= 0 else pages.first if pages.by == "page" else 0
    step = 1 if pages.by == "page" else len(items)
    return _within_length(_with_query(request, pages.parameter, str(start + step)))


def searched(expression: str, content: Any) -> Any:
    """Return what a JMESPath finds; None: nothing, or it cannot be applied."""
    try:
        return compiled(expression).search(content)
    except UNAPPLIED:
        return None


def next_arguments(
    operation: Operation, request: OutgoingRequest, onward: OutgoingRequest, query_schema: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return the arguments by which a call for a page differs from the one there was; None: none lead to it.

    :param request: of the call that there was
    :param query_schema: the schemas of what a call may set, by the names that the model knows
    """
    if onward.path != request.path:
        return None
    names = {wire.name: argument for argument, wire in operation.wire.query_params.items() if wire.name}
    before, after = _values(request), _values(onward)
    changed = {names.get(name, name): values for name, values in after.items() if values != before.get(name)}
    if ARGUMENT in changed or not changed.keys() <= query_schema.keys():
        return None
    return {argument: _as_argument(values, query_schema[argument]) for argument, values in changed.items()}


def _values(request: OutgoingRequest) -> dict[str, list[str]]:
    return parse_qs(request.query, keep_blank_values=True)


def _as_argument(values: list[str], schema: Any) -> Any:
    """Return what a parameter's values are as an argument of its schema; the text, where that says nothing of it."""
    kinds = schema.get("type") if isinstance(schema, dict) else None
    stated = [kinds] if isinstance(kinds, str) else kinds if isinstance(kinds, list) else []
    if "array" in stated:
        return [_as_argument([value], schema.get("items")) for value in values]
    for kind in () if "string" in stated else stated:
        with suppress(msgspec.DecodeError, KeyError):
            return msgspec.json.decode(values[-1], type=_KINDS[kind])
    return values[-1]


def _is_cursor(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return False
    text = str(value)
    # JSON may hold halves of characters, which no URL can.
    return len(text) <= _LONGEST_CURSOR and not any("\ud800" <= char <= "\udfff" for char in text)


def _number(request: OutgoingRequest, parameter: str) -> int | None:
    """Return the number that a request's parameter has; -1: it has none; None: it is no number."""
    for name, value in parse_qsl(request.query, keep_blank_values=True):
        if name == parameter:
            return int(value) if value.isascii() and value.isdigit() and len(value) < 16 else None
    return -1


def _with_query(request: OutgoingRequest, parameter: str, value: str) -> OutgoingRequest:
    kept = _without(request.query, {parameter})
    return replace(request, query="&".join([*kept, f"{quote(parameter, safe='')}={quote(value, safe='')}"]))


def _without(query: str, names: set[str]) -> Iterator[str]:
    """Yield the parts of a query but those of some names, as they stand there."""
    for part in query.split("&"):
        if part and unquote_plus(part.partition("=")[0]) not in names:
            yield part


def _within_length(request: OutgoingRequest) -> OutgoingRequest | End:
    if len(request.origin) + len(request.path) + len(request.query) > LONGEST_URL:
        return End("The URL of the next page would be too long, so it was not read.")
    return request


def _linked(
    operation: Operation, pages: Pages, request: OutgoingRequest, url: str, target: Any
) -> OutgoingRequest | End:
    """Return the request that a link asks for: at the same origin, below the same path, with the same credentials."""
    import httpx

    refused = End(f"The link to the next page was not followed: {_WHERE}.")
    if not isinstance(target, str) or len(target) > LONGEST_URL or _is_crooked(target):
        return refused
    try:
        joined = httpx.URL(url).join(target)
        if origin_of(str(joined)) != origin_of(url):
            return refused
    except (Refused, httpx.InvalidURL, ValueError):
        return refused
    path, query = joined.raw_path.decode("ascii").partition("?")[::2]
    own = httpx.URL(url).raw_path.decode("ascii").partition("?")[0]
    in_path = any(injection.place == "path" for injection in operation.security)
    if _segments(path) != _segments(own) and (in_path or not _is_under(path, operation, pages)):
        return refused
    claimed = {injection.name for injection in operation.security if injection.place == "query"}
    kept = request.path if _segments(path) == _segments(own) else path
    return _within_length(replace(request, path=kept, query="&".join(_without(query, claimed))))


def _is_crooked(target: str) -> bool:
    """Tell whether a link could be read in two ways, or climbs: dot segments, backslashes, blanks, what is no ASCII."""
    # Encoded ones too, and twice: many a server, or what stands before it, decodes before it looks; some cut at ";".
    path = unquote(unquote(target.partition("#")[0].partition("?")[0]))
    return (
        any(char <= " " or char > "~" or char == "\\" for char in target)
        or any(each in "{}<>" for each in target)
        or any(each.partition(";")[0] in (".", "..") for each in path.replace("\\", "/").split("/"))
    )


def _is_under(path: str, operation: Operation, pages: Pages) -> bool:
    literal = pages.under
    if literal is None:
        own = urlsplit(operation.url).path
        start, variable, _ = own.partition("{")
        literal = start.rpartition("/")[0] if variable else own
    wanted = _segments(literal.rstrip("/"))
    return _segments(path)[: len(wanted)] == wanted


def _segments(path: str) -> list[str]:
    return [unquote(segment) for segment in path.split("/")]
