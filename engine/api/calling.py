"""Calling: from an operation and the values of one call to its result (docs/api_tool.md)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import ceil
from typing import Any, Final

import anyio
import msgspec

from engine.api.authorized import Authorized
from engine.api.client_credentials import ClientCredentials
from engine.api.decoding import Content
from engine.api.large_bodies import worked
from engine.api.masking import Masker
from engine.api.next_page import next_arguments
from engine.api.operation import SETTINGS, Operation
from engine.api.page_reading import PageReader, read_page
from engine.api.pages import wanted_pages
from engine.api.request import Arguments, OutgoingRequest, build
from engine.api.response import failure, result_of
from engine.api.sending import Turn
from engine.api.signing import Signed, client_of, secrets_of, signed
from engine.api.token_request import NoToken
from engine.contract import Scope, ToolResult
from engine.net.errors import DeadlineExceeded, NetError, Unreachable, UnsafeUserUrlError
from engine.net.reply import Reply
from engine.pacing.rate import TooSoon
from engine.pacing.turns import turns
from engine.refusals import quoted
from events.errors import Refused

__all__ = ("Call", "called", "prepared")

_READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_UNKNOWN: Final = "Whether the call had its effect is not known."


class Call(msgspec.Struct, frozen=True):
    """A call ready to be sent; its ``repr`` shows no secret.

    :ivar client: what an access token is to be asked for with; None: it needs none
    :ivar secrets: those that its requests are signed with
    :ivar pages: how many are read, the first included
    :ivar query_schema: schemas of the query's arguments that a call may set
    """

    operation: Operation
    request: OutgoingRequest
    parts: Signed
    masker: Masker
    client: ClientCredentials | None = None
    secrets: dict[str, str] = {}
    pages: int = 1
    query_schema: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"<Call {self.request!r}>"


def prepared(config: Mapping[str, Any], body: dict[str, Any], idempotency_key: str | None) -> Call:
    """Return the call that a tool's request settings and the values of its body make.

    :param config: an operation with the values of ``query_params`` and ``headers``, and ``auth_credentials``
    :raises Refused: if it cannot be sent so; nothing has been sent, and no secret is shown
    """
    credentials = config.get("auth_credentials") or {}
    for name in credentials:
        if name in SETTINGS:
            raise Refused(f"The credential {quoted(name)} has the name of a setting: its owner must rename it.")
    operation = Operation.of(dict(config))
    arguments = Arguments(query_params=config.get("query_params") or {}, headers=config.get("headers") or {}, body=body)
    pages = wanted_pages(operation.pages, arguments.query_params)
    request = build(operation, arguments, idempotency_key)
    secrets = secrets_of(operation.security, credentials)
    # All the row's secrets are looked for, not only those of this operation.
    client = client_of(operation.security, secrets)
    parts, schema = signed(request, secrets), config.get("query_schema") or {}
    return Call(operation, request, parts, Masker(credentials), client, secrets, pages, schema)


async def called(scope: Scope, action: str, call: Call, seconds: float) -> ToolResult:
    """Send a call and return its result, whatever becomes of it.

    :param action: whose rate it counts for
    :param seconds: for all attempts together
    """
    deadline = anyio.current_time() + seconds
    authorized = Authorized(scope, call.client, _turn(scope, action, call.operation))
    try:
        reply = await authorized.sent(call.request, call.parts, seconds)
    except TooSoon as error:
        return failure(_too_soon(call.operation, error))
    except NoToken as error:
        return failure(call.masker.knowing(authorized.secrets).text(f"{error} Nothing was sent to the API."))
    except NetError as error:
        masker = call.masker.knowing(authorized.secrets)
        return failure(masker.text(_said(error, call.request.method, seconds)))
    if call.operation.pages is not None:
        return await _paged(authorized, call, reply, deadline, scope.services.net.largest)
    masker = call.masker.knowing(authorized.secrets)
    return _noted(await _result(reply, call.operation, masker), masker.text(authorized.note))


async def _paged(authorized: Authorized, call: Call, reply: Reply, deadline: float, largest: int) -> ToolResult:
    """Return the first page's result, as that of any call, with the items of the others where these are wanted."""
    page = await read_page(call.operation, call.request, call.parts, reply)
    sign = partial(signed, secrets=call.secrets)
    reader = PageReader(call.operation, sign, authorized.sent, deadline=deadline, largest=largest)
    found = await reader.collected(page, call.request, call.pages if page.items is not None else 1)
    masker = call.masker.knowing(authorized.secrets)
    result = await _result(reply, call.operation, masker, page.content)
    if not 200 <= reply.status < 300:
        return _noted(result, masker.text(authorized.note))
    data = dict(result.data)
    if call.pages > 1 and page.items is not None:
        data.pop("link", None)
        data |= {"data": await worked(partial(masker.value, found.items), found.size), "pages": found.count}
    onward = found.onward
    way = None if onward is None else next_arguments(call.operation, call.request, onward, call.query_schema)
    if way is not None:
        data["next"] = masker.value(way)
    notes = [found.said(call.pages, page.items is not None, way is not None), authorized.note]
    return _noted(ToolResult(data, result.status), masker.text(" ".join(filter(None, notes))))


def _turn(scope: Scope, action: str, operation: Operation) -> Turn | None:
    if operation.rate is None:
        return None
    return partial(scope.services.shared(turns).turn, scope, action, operation.rate)


def _too_soon(operation: Operation, error: TooSoon) -> str:
    return f"Rate limit: the action takes {operation.rate}; try again in {ceil(error.seconds)} s. Nothing was sent."


async def _result(reply: Reply, operation: Operation, masker: Masker, content: Content | None = None) -> ToolResult:
    return await worked(partial(result_of, reply, operation, masker, content), len(reply.body))


def _noted(result: ToolResult, note: str) -> ToolResult:
    if not note:
        return result
    return ToolResult({**result.data, "message": f"{result.data['message'].rstrip('.')}. {note}"}, result.status)


def _said(error: NetError, method: str, seconds: float) -> str:
    unknown = "" if method in _READING else f" {_UNKNOWN}"
    if isinstance(error, UnsafeUserUrlError):
        return f"URL validation error: {error}"
    if isinstance(error, Unreachable):
        return f"Connection error: {error}"
    if isinstance(error, DeadlineExceeded):
        return f"Request timeout ({seconds:.2g}s exceeded)" + (unknown and f".{unknown}")
    return f"API call failed: {error}" + (unknown and f".{unknown}")
