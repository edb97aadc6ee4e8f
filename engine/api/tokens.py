"""Access tokens that are kept until they end: in memory, for one owner's row, and fetched once for all who wait."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeAlias
from weakref import WeakValueDictionary

import anyio
import msgspec

from engine.api.client_credentials import ClientCredentials
from engine.api.token_request import NoToken, Token, fetched
from engine.contract import Scope
from engine.services import Services

__all__ = ("MARGIN", "Held", "Tokens")

MARGIN: Final = 30.0
"""Seconds before its end from which on a token is not used: its request is still to travel. Of a short life a tenth."""

_MOST: Final = 1024
"""Tokens that are kept; past that the oldest go."""

_Key: TypeAlias = tuple[str | None, str, str]


class Held(msgspec.Struct, frozen=True):
    """A token in use.

    :ivar is_fresh: whether it was fetched while this caller waited for it
    """

    token: Token
    is_fresh: bool


class Tokens:
    """The access tokens of an engine's rows; ``services.shared(Tokens)`` is the engine's one. Nothing is stored.

    A token is kept for an owner, a row and all that it was asked for with: whoever has other credentials, or another
    owner's row, never gets it. A row without an owner keeps one for each user.
    """

    def __init__(self, services: Services, clock: Callable[[], float] = time.monotonic) -> None:
        """Fetch nothing yet.

        :param clock: seconds
        """
        self._services = services
        self._clock = clock
        self._kept: dict[_Key, tuple[Token, float]] = {}
        self._turns: WeakValueDictionary[_Key, _Turn] = WeakValueDictionary()

    def __repr__(self) -> str:
        return f"<Tokens {len(self._kept)} kept, {len(self._turns)} being fetched>"

    async def usable(self, scope: Scope, credentials: ClientCredentials, deadline: float) -> Held:
        """Return a token, fetched if none is kept. Of those who wait for one, one asks, and all are told what it says.

        A caller who is cancelled, or has no more time, leaves the asking to the next.

        :param deadline: a moment of AnyIO's clock
        :raises NoToken: if none is given in time
        """
        key = _key(scope, credentials)
        if (kept := self._valid(key)) is not None:
            return Held(kept, is_fresh=False)
        turn = self._turns.setdefault(key, _Turn())
        with anyio.CancelScope(deadline=deadline):
            return Held(await self._fetched(key, turn, credentials, deadline), is_fresh=True)
        raise NoToken(f"No access token: {credentials.host} gave none before the call's deadline.", settled=False)

    def drop(self, scope: Scope, credentials: ClientCredentials, token: Token) -> None:
        """Keep a token no longer that was not accepted; one that was fetched since stays."""
        key = _key(scope, credentials)
        kept = self._kept.get(key)
        if kept is not None and kept[0] is token:
            del self._kept[key]

    def of(self, scope: Scope) -> tuple[Token, ...]:
        """Return all tokens that are kept for a row, to be taken out of what comes back."""
        row = _row(scope)
        return tuple(token for key, (token, _) in self._kept.items() if key[:2] == row)

    async def _fetched(self, key: _Key, turn: _Turn, credentials: ClientCredentials, deadline: float) -> Token:
        failures = turn.failures
        async with turn.lock:
            if (kept := self._valid(key)) is not None:
                return kept
            if turn.failures != failures:
                # Asking once more would be one request for each of those who waited.
                raise NoToken(turn.said)
            try:
                token = await fetched(self._services, credentials, deadline)
            except NoToken as error:
                turn.failed(error)
                raise
            self._keep(key, token)
            return token

    def _valid(self, key: _Key) -> Token | None:
        token, end = self._kept.get(key, (None, 0.0))
        return token if self._clock() < end else None

    def _keep(self, key: _Key, token: Token) -> None:
        self._kept.pop(key, None)
        self._kept[key] = token, self._clock() + token.lifetime - min(MARGIN, token.lifetime / 10)
        if len(self._kept) > _MOST:
            del self._kept[next(iter(self._kept))]


class _Turn:
    """One at a time, for one token; those who waited share a failure that is no accident of one caller."""

    def __init__(self) -> None:
        self.lock = anyio.Lock()
        self.failures = 0
        self.said = ""

    def failed(self, error: NoToken) -> None:
        """Take note of a failure."""
        if error.settled:
            self.failures += 1
            self.said = str(error)


def _key(scope: Scope, credentials: ClientCredentials) -> _Key:
    return (*_row(scope), credentials.digest)


def _row(scope: Scope) -> tuple[str | None, str]:
    return (scope.user_id if scope.owner is None else scope.owner, scope.tool_id)
