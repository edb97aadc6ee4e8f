"""Where the next page is: another query of the same request, or a link that leads nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import parse_qsl, quote, unquote, unquote_plus, urlsplit

import msgspec
from msgspec.structs import replace

from engine.api.links import linked
from engine.api.operation import Operation, compiled
from engine.api.origins import origin_of
from engine.api.pages import Pages
from engine.api.request import LONGEST_URL, OutgoingRequest
from engine.net.reply import Reply
from events.errors import Refused

__all__ = ("End", "following", "searched", "way_on")

_LONGEST_CURSOR: Final = 4096
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
        if isinstance(value, bool) or not isinstance(value, str | int | float) or len(str(value)) > _LONGEST_CURSOR:
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
    from jmespath.exceptions import JMESPathError

    try:
        return compiled(expression).search(content)
    except (JMESPathError, LookupError, TypeError, ValueError, RecursionError):
        return None


def way_on(operation: Operation, request: OutgoingRequest) -> dict[str, str | int]:
    """Return the arguments that a call for a page takes, by the names that the model knows; numbers but of cursors."""
    names = {wire.name: argument for argument, wire in operation.wire.query_params.items() if wire.name}
    pages = operation.pages
    wanted = pages.parameter if pages is not None and pages.by != "link" else None
    as_text = pages is not None and pages.by == "cursor"
    pairs = parse_qsl(request.query, keep_blank_values=True)
    return {
        names.get(name, name): value if as_text else _as_number(value)
        for name, value in pairs
        if wanted in (None, name)
    }


def _as_number(text: str) -> str | int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 and str(int(text)) == text else text


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
    path = target.partition("#")[0].partition("?")[0]
    return (
        any(char <= " " or char > "~" or char == "\\" for char in target)
        or any(each in "{}<>" for each in target)
        # Encoded slashes too: many a server decodes them before it looks.
        or any(each in (".", "..") for each in unquote(path).replace("\\", "/").split("/"))
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
