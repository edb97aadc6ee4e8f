"""Authorizations that stay usable: renewed once, by one of all the calls and workers that need them (MCP-10).

In a process the callers of one authorization wait for each other. Among processes the one that claims its row renews;
the others read again until they find what it stored. Nobody stores over what has changed since it was read, and nothing
is ever deleted because a renewal failed. Once a refresh token is on its way, the answer is waited for and stored,
whatever cancels the caller: a server that rotates has forgotten the old one.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from functools import partial
from typing import Final
from weakref import WeakValueDictionary

import anyio
import msgspec

from engine.mcp.oauth_errors import AuthorizationFailed, AuthorizationNeeded, AuthorizationUnavailable, shown
from engine.mcp.oauth_grant import Grant
from engine.mcp.oauth_http import OAuthHttp
from engine.mcp.token_store import LEASE, Kept, TokenStore
from engine.services import Services
from events.errors import JournalError, Refused, Unavailable
from events.keys import new_id
from events.persistence import run_to_end

__all__ = ("Grants", "Place")

PATIENCE: Final = LEASE + 15.0
"""Seconds for which another worker's renewal is waited for: longer than the claim of a dead one holds."""

_STORING: Final = 10.0

_log = logging.getLogger("calljournal.oauth")


class Place(msgspec.Struct, frozen=True):
    """Whose authorization, for which server.

    :ivar url: canonical
    :ivar tool_id: the row that texts name
    """

    owner: str | None
    url: str
    tool_id: str

    def needed(self, why: str) -> AuthorizationNeeded:
        """Return the error that says what is missing."""
        return AuthorizationNeeded(self.url, why, self.tool_id)


class Grants:
    """The authorizations of an engine's owners; ``services.shared(Grants)`` is the engine's one."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._http = OAuthHttp(services)
        self._name = new_id()
        self._turns: WeakValueDictionary[tuple[str | None, str], _Turn] = WeakValueDictionary()
        # Renewed, but the database could not be written: the old refresh token may be worth nothing any more.
        self._unsaved: dict[tuple[str | None, str], tuple[Kept, Grant]] = {}

    def __repr__(self) -> str:
        waiting = sum(turn.lock.statistics().tasks_waiting for turn in self._turns.values())
        return f"<Grants {len(self._turns)} being renewed, {waiting} waiting, {len(self._unsaved)} unsaved>"

    def at(self, place: Place) -> TokenStore:
        """Return where a place's authorization is stored. :raises Refused: if these services have no database"""
        if self._services.store is None:
            raise Refused(f"{shown(place.url)} needs OAuth, and there is no journal to keep its tokens in")
        return TokenStore(self._services.store, self._services.vault, place.owner, place.url)

    async def usable(self, place: Place, *, rejected: str | None = None, known: Kept | None = None) -> Kept:
        """Return an authorization whose token may be sent now, renewed if need be; nobody is asked for consent.

        :param rejected: a token that the server has just turned down
        :param known: what was returned before, which spares its opening
        :raises AuthorizationNeeded: if there is none, or it cannot be renewed
        :raises AuthorizationUnavailable: if it cannot be renewed now
        :raises LogUnavailable: if the database cannot be read
        """
        kept = await self._read(place, known)
        if kept.grant.serves(time.time(), rejected):
            return kept
        turn = self._turns.setdefault((place.owner, place.url), _Turn())
        failures = turn.failures
        async with turn.lock:
            if turn.failures != failures:
                # It failed while this caller waited for it; asking once more would be one request for each of them.
                raise turn.failure()
            try:
                return await self._settled(place, rejected)
            except (AuthorizationFailed, AuthorizationUnavailable) as error:
                turn.failed(error)
                raise

    async def aclose(self) -> None:
        """Store what could not be stored before."""
        for key, (kept, grant) in list(self._unsaved.items()):
            await self.at(Place(*key, "")).replace(kept, grant)
            self._unsaved.pop(key, None)

    async def _read(self, place: Place, known: Kept | None = None) -> Kept:
        store = self.at(place)
        unsaved = self._unsaved.get((place.owner, place.url))
        if unsaved is not None:
            await store.replace(*unsaved)
            self._unsaved.pop((place.owner, place.url), None)
        kept = await store.read(known)
        if kept is None:
            raise place.needed("has not been authorized")
        if kept.grant.refused is not None:
            raise place.needed(f"has withdrawn its authorization ({kept.grant.refused})")
        return kept

    async def _settled(self, place: Place, rejected: str | None) -> Kept:
        with anyio.move_on_after(PATIENCE):
            for pause in _pauses():
                kept = await self._read(place)
                if kept.grant.serves(time.time(), rejected):
                    return kept
                if kept.grant.refresh_token is None:
                    raise place.needed("has an authorization that has ended")
                if await run_to_end(partial(self._renew, place, kept)):
                    # As it is: a server whose tokens end at once would be asked for ever.
                    return await self._read(place)
                await anyio.sleep(pause)
        raise AuthorizationUnavailable(
            f"the authorization for {shown(place.url)} is being renewed elsewhere; try again"
        )

    async def _renew(self, place: Place, kept: Kept) -> bool:
        """Claim and renew; False: somebody else has the claim."""
        from engine.mcp.oauth_renewal import renewed

        store = self.at(place)
        if not await store.claim(kept, self._name):
            return False
        try:
            grant = await renewed(self._http, place.url, kept.grant)
        except JournalError:
            await self._released(store, kept)
            raise
        await self._stored(place, store, kept, grant)
        return True

    async def _stored(self, place: Place, store: TokenStore, kept: Kept, grant: Grant) -> None:
        try:
            with anyio.fail_after(_STORING):
                if await store.replace(kept, grant) or await _restored(store, kept, grant):
                    return
        except (Unavailable, TimeoutError) as error:
            self._unsaved[place.owner, place.url] = kept, grant
            text = "a renewed authorization for %s could not be stored yet: %s"
            _log.warning(text, shown(place.url), error or "the database does not answer")
            return
        _log.info("the authorization for %s was replaced while it was being renewed", shown(place.url))

    async def _released(self, store: TokenStore, kept: Kept) -> None:
        try:
            with anyio.fail_after(_STORING):
                await store.release(kept, self._name)
        except (Unavailable, TimeoutError) as error:
            # The claim runs out by itself.
            _log.info("a claim could not be given up: %s", error)


async def _restored(store: TokenStore, kept: Kept, grant: Grant) -> bool:
    """Store a renewal over the mark of a worker to whom the same refresh token was refused, for being used already."""
    now = await store.read()
    marked = now is not None and now.grant.refused and now.grant.refresh_token == kept.grant.refresh_token
    return bool(marked and now is not None and await store.replace(now, grant))


class _Turn:
    """One at a time, for one authorization in this process; those who waited share a failure."""

    def __init__(self) -> None:
        self.lock = anyio.Lock()
        self.failures = 0
        self._error: AuthorizationFailed | AuthorizationUnavailable = AuthorizationUnavailable("")

    def failed(self, error: AuthorizationFailed | AuthorizationUnavailable) -> None:
        """Take note of a failure."""
        self.failures += 1
        self._error = error

    def failure(self) -> AuthorizationFailed | AuthorizationUnavailable:
        """Return the last failure anew: one exception is not raised in several tasks."""
        if isinstance(self._error, AuthorizationUnavailable):
            return AuthorizationUnavailable(self._error.text)
        return AuthorizationFailed(str(self._error))


def _pauses() -> Iterator[float]:
    pause = 0.05
    while True:
        yield pause
        pause = min(0.5, pause * 2)
