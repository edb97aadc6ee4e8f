"""The interactive consent, from the URL to open to the tokens that are stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import anyio

from engine.contract import Scope
from engine.mcp.oauth import place_of
from engine.mcp.oauth_callback import listening
from engine.mcp.oauth_consent import Consenting, ShowUrl
from engine.mcp.oauth_errors import AuthorizationFailed
from engine.mcp.oauth_grant import parse_scopes
from events.errors import JournalError

__all__ = ("DEADLINE", "authorize")

DEADLINE: Final = 300.0
"""Seconds for all of it; most of them are for a person to agree."""


async def authorize(
    server_url: str,
    scopes: str | Sequence[str] | None,
    client_name: str,
    scope: Scope,
    show_url: ShowUrl,
    *,
    port: int = 0,
    deadline: float = DEADLINE,
) -> None:
    """Have a person agree in a browser, and store what that gives in the place of what there was.

    What there was stands until then, and for good if the flow fails. A stored client is used again only if it was
    registered with this very redirect URI; else it counts as gone, and its tokens with it.

    :param scopes: as configured; none: those that the server names
    :param client_name: under which the client is registered
    :param show_url: is given the URL to open in a browser
    :param port: of the callback; 0: any that is free
    :param deadline: seconds
    :raises AuthorizationFailed: if it comes to nothing
    :raises AuthorizationUnavailable: if a server cannot be reached
    :raises Refused: if the URL or the scopes are none, or a URL of the flow is not allowed
    """
    wanted = parse_scopes(scopes)
    place, failure = place_of(server_url, scope), None
    limit = anyio.CancelScope()
    async with listening(port) as callback:
        consenting = Consenting(place, wanted, client_name, scope.services, show_url, callback)
        limit.deadline = anyio.current_time() + deadline
        try:
            with limit:
                await consenting.run()
        except JournalError as error:
            # Raised within the block it would come out wrapped in a group.
            failure = error
    if failure is not None:
        raise failure
    if limit.cancelled_caught:
        raise AuthorizationFailed(f"nobody agreed within {deadline:g} seconds; run it again")
