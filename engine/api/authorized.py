"""Sending with an access token: it is fetched before, and once more where a kept one turns out to be worth nothing."""

from __future__ import annotations

from contextlib import suppress

import anyio

from engine.api.client_credentials import ClientCredentials
from engine.api.request import OutgoingRequest
from engine.api.sending import Turn, sent
from engine.api.signing import Signed
from engine.api.token_request import NoToken, Token
from engine.api.tokens import Held, Tokens
from engine.contract import Scope
from engine.net.client import safe_client
from engine.net.reply import Reply
from engine.pacing.rate import TooSoon

__all__ = ("Authorized",)


class Authorized:
    """Sends the requests of one call, with an access token where the call has credentials for one.

    :ivar note: what is to be said beside the last reply; empty: nothing
    """

    def __init__(self, scope: Scope, credentials: ClientCredentials | None, turn: Turn | None = None) -> None:
        """Fetch nothing yet.

        :param turn: waited for before each request to the API; None: they are sent at once
        """
        self._scope = scope
        self._credentials = credentials
        self._turn = turn
        self._client = scope.services.shared(safe_client)
        self._used: list[Token] = []
        self.note = ""

    def __repr__(self) -> str:
        return f"<Authorized with {len(self._used)} tokens so far>"

    @property
    def secrets(self) -> dict[str, str]:
        """What is to be taken out of what comes back: the row's tokens, and the forms of the client's secrets."""
        forms = {} if self._credentials is None else self._credentials.forms
        tokens = (*self._used, *self._scope.services.shared(Tokens).of(self._scope))
        return {**forms, **{f"access token {number}": each.value for number, each in enumerate(tokens)}}

    async def sent(self, request: OutgoingRequest, parts: Signed, seconds: float, largest: int | None = None) -> Reply:
        """Send a request and return its reply, as :func:`engine.api.sending.sent` does.

        A 401 ends the token. Where it was a kept one, and the request may be repeated, it is sent once more with a
        fresh one.

        :param seconds: for all of it together, tokens included
        :param largest: bytes of the body, within the policy's limit; None: that
        :raises NoToken: if there is no token; the request was not sent
        :raises TooSoon: if there is no turn for it
        :raises NetError: if no reply came
        """
        if self._credentials is None:
            return await sent(self._client, request, parts, seconds, self._turn, largest=largest)
        deadline = anyio.current_time() + seconds
        held = await self._held(self._credentials, deadline)
        reply = await self._tried(request, parts, held, deadline, largest)
        if reply.status == 401 and request.repeatable and not held.is_fresh:
            try:
                held = await self._held(self._credentials, deadline)
            except NoToken as error:
                self.note = f"The access token was not accepted, and there is no other. {error}"
                return reply
            with suppress(TooSoon):
                reply = await self._tried(request, parts, held, deadline, largest)
        if reply.status == 401:
            self.note = "The access token was not accepted; the next call asks for another."
        return reply

    async def _held(self, credentials: ClientCredentials, deadline: float) -> Held:
        held = await self._scope.services.shared(Tokens).usable(self._scope, credentials, deadline)
        self._used.append(held.token)
        return held

    async def _tried(
        self, request: OutgoingRequest, parts: Signed, held: Held, deadline: float, largest: int | None
    ) -> Reply:
        left = max(0.0, deadline - anyio.current_time())
        reply = await sent(self._client, request, parts.bearing(held.token.value), left, self._turn, largest=largest)
        if reply.status == 401 and self._credentials is not None:
            self._scope.services.shared(Tokens).drop(self._scope, self._credentials, held.token)
        return reply
