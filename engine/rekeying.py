"""Everything that is stored sealed, sealed anew under the current master key; and under which keys it is now.

What is sealed within events stays as it is, for events never change: to run or read such calls their key must stay too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import Table, select, tuple_, update

from engine.credentials import CredentialsError, Vault, key_id
from engine.mcp.token_store import sealed_as
from engine.opened_rows import LEGACY
from engine.schema import oauth_tokens, tool_row_versions, tool_rows
from events.codec import encode_json
from events.errors import LogUnavailable
from events.keys import tenant_of
from events.store import Store

__all__ = ("KeyUse", "Rotation", "rotate", "uses_of_keys")

_BATCH: Final = 100
_PASSES: Final = 5
"""How often what others stored meanwhile under an older key is looked for."""


class KeyUse(msgspec.Struct, frozen=True, kw_only=True):
    """What is sealed under one master key.

    :ivar key: its id; empty: of what is in no known form
    :ivar current: new things are sealed under it
    :ivar known: it is among this process's keys
    """

    key: str
    current: bool
    known: bool
    rows: int = 0
    tokens: int = 0


class Rotation(msgspec.Struct, frozen=True, kw_only=True):
    """What a rotation came to.

    :ivar key: the id of the current master key
    :ivar renewed: how many sealed texts are now under it and were not
    :ivar already: how many had been before
    :ivar failed: what could not be opened, each with the reason
    """

    key: str
    renewed: int
    already: int
    failed: tuple[str, ...] = ()


class _Source(msgspec.Struct, frozen=True):
    """A column that holds sealed texts.

    :ivar keys: the columns that name one of its rows, the one whose text the secrets are sealed for last
    :ivar sealed_for: what that text makes them sealed for
    :ivar within: it holds JSON with the sealed text in its ``config``
    """

    what: str
    table: Table
    keys: tuple[str, ...]
    column: str
    sealed_for: Callable[[str], str] = str
    within: bool = False


class _Found(msgspec.Struct, frozen=True):
    source: _Source
    place: tuple[Any, ...]
    owner: str | None
    stored: str

    @property
    def is_sealed(self) -> bool:
        """Whether there is a sealed text in it."""
        return not self.source.within or bool(self._config().get(LEGACY))

    @property
    def blob(self) -> str:
        blob = self._config()[LEGACY] if self.source.within else self.stored
        return blob if isinstance(blob, str) else ""

    @property
    def row_id(self) -> str:
        return self.source.sealed_for(str(self.place[-1]))

    def with_blob(self, blob: str) -> str:
        """Return the column's text with another sealed text in it."""
        if not self.source.within:
            return blob
        content = msgspec.json.decode(self.stored)
        return encode_json({**content, "config": {**content["config"], LEGACY: blob}}).decode()

    def _config(self) -> dict[str, Any]:
        try:
            content = msgspec.json.decode(self.stored)
        except msgspec.DecodeError as error:
            raise LogUnavailable(f"{self} cannot be read by this release; upgrade it") from error
        config = content.get("config") if isinstance(content, dict) else None
        return config if isinstance(config, dict) else {}

    def __str__(self) -> str:
        return f"{self.source.what} {self.place[-1]!r}"


_SOURCES: Final = (
    _Source("credentials of tool row", tool_rows, ("id",), "credentials"),
    _Source("configuration of tool row", tool_rows, ("id",), "definition", within=True),
    _Source("earlier configuration of tool row", tool_row_versions, ("version", "id"), "definition", within=True),
    _Source("authorization for", oauth_tokens, ("tenant", "server_url"), "sealed", sealed_as),
)


async def uses_of_keys(store: Store, vault: Vault) -> list[KeyUse]:
    """Return which keys are in use, the current one first.

    :raises LogUnavailable: if the database cannot be read
    """
    rows, tokens = Counter[str](), Counter[str]()
    for source in _SOURCES:
        count = tokens if source.table is oauth_tokens else rows
        batch = await _batch(store, source)
        while batch:
            count.update(_key_of(found) for found in batch if found.is_sealed)
            batch = await _batch(store, source, batch[-1].place)
    names = sorted({*rows, *tokens, vault.current}, key=lambda name: (name != vault.current, name))
    return [
        KeyUse(key=name, current=name == vault.current, known=vault.knows(name), rows=rows[name], tokens=tokens[name])
        for name in names
    ]


async def rotate(store: Store, vault: Vault, progress: Callable[[int], None] | None = None) -> Rotation:
    """Seal everything stored anew under the current key; interrupted, the same again goes on where it stood.

    What somebody changes meanwhile is left to them. What cannot be opened stays as it is, and is reported.

    :param progress: told how many have been looked at
    :raises LogUnavailable: if the database cannot be read or written
    """
    work = _Work(store, vault, progress)
    for turn in range(_PASSES):
        if await work.run(again=turn > 0):
            break
    failed = tuple([f"{what}: {why}" for what, why in work.failed.items()])
    return Rotation(key=vault.current, renewed=work.renewed, already=work.already, failed=failed)


class _Work:
    """A rotation as far as it has come."""

    def __init__(self, store: Store, vault: Vault, progress: Callable[[int], None] | None) -> None:
        self._store = store
        self._vault = vault
        self._progress = progress
        self.renewed = self.already = self._seen = 0
        self.failed: dict[str, str] = {}

    async def run(self, again: bool) -> bool:
        """Look at everything once; False: somebody stored something meanwhile."""
        complete = True
        for source in _SOURCES:
            batch = await _batch(self._store, source)
            while batch:
                sealed = [found for found in batch if found.is_sealed]
                old = [found for found in sealed if _key_of(found) != self._vault.current]
                self.already += 0 if again else len(sealed) - len(old)
                complete &= await self._renew(old)
                self._seen += 0 if again else len(sealed)
                if self._progress is not None:
                    self._progress(self._seen)
                batch = await _batch(self._store, source, batch[-1].place)
        return complete

    async def _renew(self, old: Sequence[_Found]) -> bool:
        statements, faults = _statements(self._vault, old)
        touched = sum(await self._store.write(statements)) if statements else 0
        self.renewed += touched
        self.failed |= faults
        return touched == len(statements)


def _statements(vault: Vault, old: Sequence[_Found]) -> tuple[list[Any], dict[str, str]]:
    statements: list[Any] = []
    faults: dict[str, str] = {}
    for found in old:
        try:
            blob = vault.reseal(found.blob, owner=found.owner, row_id=found.row_id)
        except CredentialsError as error:
            faults[str(found)] = str(error)
            continue
        assert blob is not None
        column = found.source.table.c[found.source.column]
        # Only over what was read: whoever changed it meanwhile has sealed it themselves.
        wanted = (*_place(found.source, found.place), column == found.stored)
        statements.append(update(found.source.table).where(*wanted).values({column: found.with_blob(blob)}))
    return statements, faults


def _place(source: _Source, place: tuple[Any, ...]) -> list[Any]:
    return [source.table.c[name] == value for name, value in zip(source.keys, place, strict=True)]


async def _batch(store: Store, source: _Source, after: tuple[Any, ...] | None = None) -> list[_Found]:
    """Return what a column holds behind a place, in the order of its keys; nothing at its end."""
    table = source.table
    keys = [table.c[name] for name in source.keys]
    column = table.c[source.column]
    wanted = column.contains(f'"{LEGACY}"') if source.within else column.is_not(None)
    chosen = select(*keys, table.c.tenant, column).where(wanted).order_by(*keys).limit(_BATCH)
    rows = await store.read(chosen if after is None else chosen.where(tuple_(*keys) > tuple_(*after)))
    return [_Found(source, tuple(row[: len(keys)]), tenant_of(row[-2]), row[-1]) for row in rows]


def _key_of(found: _Found) -> str:
    try:
        return key_id(found.blob)
    except CredentialsError:
        return ""
