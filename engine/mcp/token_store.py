"""Authorizations in the journal's database: sealed, one row per owner and server URL, one version per change.

Nobody overwrites what somebody else stored: every change but a new consent names the version that it replaces. Whoever
renews a token claims the row first, for a time by the database's clock.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

import msgspec
from sqlalchemy import ColumnElement, delete, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from engine.credentials import Vault
from engine.lease import database_time
from engine.mcp.oauth_grant import Grant
from engine.schema import oauth_tokens
from events.errors import LogUnavailable
from events.keys import tenant_column
from events.persistence import run_to_end
from events.store import Store

__all__ = ("LEASE", "Kept", "TokenStore", "sealed_as")

LEASE: Final = 30.0
"""Seconds for which a claim holds: longer than any renewal takes, so that only a dead worker's runs out."""

_ROW: Final = oauth_tokens.c


class Kept(msgspec.Struct, frozen=True):
    """A stored grant.

    :ivar sealed: as it stands in the database
    """

    version: int
    sealed: str
    grant: Grant


class TokenStore:
    """One owner's authorization for one server.

    :param owner: whose it is
    :param url: the server's, canonical
    """

    def __init__(self, store: Store, vault: Vault, owner: str | None, url: str) -> None:
        self._store = store
        self._vault = vault
        self._owner = owner
        self._url = url

    def __repr__(self) -> str:
        return f"<TokenStore of {self._owner!r}>"

    async def read(self, known: Kept | None = None) -> Kept | None:
        """Return what is stored, or None.

        :param known: what was read before; the same once more is not opened again
        :raises CredentialsError: if it cannot be opened
        :raises LogUnavailable: if the database cannot be read
        """
        rows = await self._store.read(select(_ROW.version, _ROW.sealed).where(*self._here()))
        if not rows:
            return None
        version, sealed = rows[0]
        if known is not None and known.sealed == sealed:
            return known if known.version == version else Kept(version, sealed, known.grant)
        return Kept(version, sealed, self._opened(sealed))

    async def put(self, grant: Grant) -> None:
        """Store a new consent in the place of whatever there was. :raises LogUnavailable: if it cannot be written"""
        dialect = postgresql if self._store.dialect == "postgresql" else sqlite
        new = {"sealed": self._sealed(grant), "updated_at": datetime.now(UTC)}
        key = {"tenant": tenant_column(self._owner), "server_url": self._url}
        free = {"refreshing_by": None, "refreshing_until": None}
        await self._write(
            dialect.insert(oauth_tokens)
            .values(version=1, **key, **new)
            .on_conflict_do_update(
                index_elements=["tenant", "server_url"], set_={"version": _ROW.version + 1, **new, **free}
            )
        )

    async def claim(self, kept: Kept, by: str) -> bool:
        """Claim the renewal of what was read; False: it has changed, or another one is at it.

        :raises LogUnavailable: if it cannot be written
        """
        now = await database_time(self._store)
        free = or_(_ROW.refreshing_until.is_(None), _ROW.refreshing_until < now)
        claimed = update(oauth_tokens).where(*self._at(kept), free)
        until = now + timedelta(seconds=LEASE)
        return await self._write(claimed.values(refreshing_by=by, refreshing_until=until)) == 1

    async def release(self, kept: Kept, by: str) -> None:
        """Give a claim up; one that has passed to somebody else stays. :raises LogUnavailable: if it cannot be"""
        own = update(oauth_tokens).where(*self._at(kept), _ROW.refreshing_by == by)
        await self._write(own.values(refreshing_by=None, refreshing_until=None))

    async def replace(self, kept: Kept, grant: Grant) -> bool:
        """Store what follows what was read, and free the row; False: somebody else has stored something since.

        :raises LogUnavailable: if it cannot be written
        """
        changed = update(oauth_tokens).where(*self._at(kept))
        values = {"version": kept.version + 1, "sealed": self._sealed(grant), "updated_at": datetime.now(UTC)}
        return await self._write(changed.values(**values, refreshing_by=None, refreshing_until=None)) == 1

    async def forget(self) -> bool:
        """Remove what is stored, and tell whether there was anything. :raises LogUnavailable: if it cannot be"""
        return await self._write(delete(oauth_tokens).where(*self._here())) == 1

    def _here(self) -> tuple[ColumnElement[bool], ...]:
        return _ROW.tenant == tenant_column(self._owner), _ROW.server_url == self._url

    def _at(self, kept: Kept) -> tuple[ColumnElement[bool], ...]:
        return *self._here(), _ROW.version == kept.version

    async def _write(self, statement: Any) -> int:
        (touched,) = await run_to_end(partial(self._store.write, (statement,)))
        return touched

    def _sealed(self, grant: Grant) -> str:
        sealed = self._vault.seal(msgspec.to_builtins(grant), owner=self._owner, row_id=sealed_as(self._url))
        assert sealed is not None
        return sealed

    def _opened(self, sealed: str) -> Grant:
        content = self._vault.open(sealed, owner=self._owner, row_id=sealed_as(self._url))
        try:
            return msgspec.convert(content, Grant)
        except msgspec.ValidationError:
            # Not its text: that may quote what it found.
            raise LogUnavailable("a stored authorization cannot be read by this release; upgrade it") from None


def sealed_as(url: str) -> str:
    """Return what a server's authorization is sealed for, where a row's credentials have the row's id."""
    return f"oauth:{url}"
