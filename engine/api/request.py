"""Requests: an operation and the values of one call brought together, before any credential is in it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlsplit

import msgspec

from engine.api.bodies import Body, written_body
from engine.api.headers import Header, header_name, header_value, written_headers
from engine.api.operation import Injection, Operation, Wire
from engine.api.origins import require_trusted
from engine.api.pages import ARGUMENT
from engine.api.path import VARIABLE, filled_path, filled_query
from engine.api.preview import Preview
from engine.api.query import Pair, own_pairs, pairs_of, query_text
from engine.api.signing import MASK, masked, signed
from engine.api.wording import json_text
from engine.refusals import quoted
from events.errors import Refused

__all__ = ("LONGEST_URL", "Arguments", "OutgoingRequest", "build")

LONGEST_URL: Final = 16_384
"""Characters of a URL, at most."""

_KEPT: Final = "/%{}:@!$&'()*+,;=~"
_ACCEPT: Final = "application/json, */*;q=0.8"


class Arguments(msgspec.Struct, frozen=True, kw_only=True):
    """The values of one call, by the groups of its action."""

    query_params: dict[str, Any] = {}
    headers: dict[str, Any] = {}
    body: dict[str, Any] = {}


class OutgoingRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The exact request, but for its credentials: these are put in by ``signing`` when it is sent, and never kept.

    :ivar path: with ``{name}`` left where a credential goes
    :ivar query: without the ``?``
    :ivar cookies: as they stand in the Cookie header
    :ivar content: None: it has no body
    :ivar repeatable: may be sent again where it is not known to have arrived
    """

    method: str
    origin: str
    path: str
    query: str
    headers: tuple[Header, ...]
    cookies: tuple[str, ...]
    content: bytes | None
    security: tuple[Injection, ...]
    repeatable: bool

    def preview(self) -> Preview:
        """Return what would be sent, each credential as ``***``."""
        parts = signed(self, masked(self.security))
        token_url = next((each.token_url for each in self.security if each.place == "oauth2"), None)
        if token_url is not None:
            parts = parts.bearing(MASK)
        return Preview.of(self.method, parts.url, parts.headers, self.content, token_url)

    def __repr__(self) -> str:
        return f"<OutgoingRequest {self.method} {self.origin}{self.path}>"


class _Parts(msgspec.Struct):
    variables: dict[str, Any] = {}
    styles: dict[str, Any] = {}
    pairs: list[Pair] = []
    cookies: list[Pair] = []


def build(operation: Operation, arguments: Arguments, idempotency_key: str | None = None) -> OutgoingRequest:
    """Return the request that an operation makes of a call's values; neither is changed.

    :param idempotency_key: sent where the operation names a header for it
    :raises Refused: if a value cannot be where it would go, or its credentials may not go there: nothing was sent
    """
    if operation.trusted_origins is not None:
        require_trusted(operation.trusted_origins, operation.destinations)
    url = urlsplit(operation.url)
    secret = _names(operation, "path")
    parts = _sorted(operation, arguments.query_params, set(VARIABLE.findall(url.path + "?" + url.query)), secret)
    path = filled_path(url.path or "/", parts.variables, parts.styles, secret)
    queries = [
        filled_query(url.query, parts.variables),
        query_text(_unclaimed(parts.pairs, _names(operation, "query"))),
    ]
    body = _body(operation, arguments.body)
    headers = list(_headers(operation, arguments.headers, body.content_type if body else None, idempotency_key))
    cookies = query_text(_unclaimed(parts.cookies, _names(operation, "cookie")))
    request = OutgoingRequest(
        method=operation.method,
        origin=operation.origin,
        path=quote(path, safe=_KEPT),
        query=quote("&".join([query for query in queries if query]), safe=_KEPT + "?"),
        headers=tuple(headers),
        cookies=tuple(cookies.split("&")) if cookies else (),
        content=None if body is None else body.content,
        security=operation.security,
        repeatable=operation.may_be_repeated,
    )
    if len(request.origin) + len(request.path) + len(request.query) > LONGEST_URL:
        raise Refused(f"The URL would have more than {LONGEST_URL} characters: send less.")
    return request


def _body(operation: Operation, values: Mapping[str, Any]) -> Body | None:
    try:
        return written_body(operation, values)
    except Refused as error:
        raise Refused(f"Body serialization error: {error}") from None


def _sorted(
    operation: Operation, values: Mapping[str, Any], variables: Collection[str], secret: Collection[str]
) -> _Parts:
    parts, names = _Parts(), _parameter_names(operation, values)
    for argument, value in values.items():
        if argument == ARGUMENT and operation.pages is not None:
            continue
        wire = operation.wire.query_params.get(argument) or Wire()
        name = wire.name or argument
        place = wire.place or ("path" if name in variables else "query")
        if place == "path":
            if name in secret:
                raise Refused(f"Parameter {quoted(argument)} cannot be set: it is the tool's credential.")
            if name not in variables:
                raise Refused(f"The action's URL has no {{{name}}} for parameter {quoted(argument)}.")
            parts.variables[name] = value if wire.content_type is None else json_text(value)
            parts.styles[name] = (wire.style, wire.explode or False)
        else:
            pairs = own_pairs(name, _pairs(name, value, wire), names)
            (parts.pairs if place == "query" else parts.cookies).extend(pairs)
    return parts


def _parameter_names(operation: Operation, values: Mapping[str, Any]) -> set[str]:
    """Return what the parameters are called on the wire, those that stand in the URL too."""
    wires = operation.wire.query_params
    given = {(each and each.name) or argument for argument in values for each in (wires.get(argument),)}
    named = {wire.name or argument for argument, wire in wires.items()}
    fixed = {name for name, _ in parse_qsl(urlsplit(operation.url).query, keep_blank_values=True)}
    return given | named | fixed


def _pairs(name: str, value: Any, wire: Wire) -> Iterator[Pair]:
    if wire.content_type is not None and value is not None:
        yield Pair(name, (json_text(value),))
    else:
        yield from pairs_of(name, value, wire.style, wire.explode)


def _names(operation: Operation, place: str) -> frozenset[str]:
    return frozenset(injection.name for injection in operation.security if injection.place == place)


def _unclaimed(pairs: list[Pair], claimed: Collection[str]) -> list[Pair]:
    """Return the pairs, none of them named as a credential is: the server might read the wrong one."""
    for pair in pairs:
        if pair.name in claimed:
            raise Refused(f"Parameter {quoted(pair.name)} cannot be set: it is the tool's credential.")
    return pairs


def _headers(
    operation: Operation, values: Mapping[str, Any], content_type: str | None, key: str | None
) -> Iterator[Header]:
    own = operation.idempotency_header
    taken = {injection.header for injection in operation.security if injection.header} | (
        {own.lower()} if own else set()
    )
    given = list(written_headers(values, operation.wire.headers, taken))
    names = {name.lower() for name, _ in given}
    if "accept" not in names:
        yield "Accept", _ACCEPT
    for name, value in given:
        if content_type is None or name.lower() != "content-type":
            yield name, value
    if content_type is not None:
        yield "Content-Type", header_value("Content-Type", content_type)
    if own and key:
        yield header_name(own), header_value(own, key)
