"""Rotation: what is stored is sealed anew under the current key, whatever interrupts it, and nothing is lost."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from sqlalchemy import insert, select, update

from engine import Engine
from engine.credentials import MasterKeys, Vault, key_id
from engine.mcp.token_store import sealed_as
from engine.rekeying import KeyUse, rotate, uses_of_keys
from engine.schema import oauth_tokens, tool_row_versions, tool_rows
from events.errors import LogUnavailable
from events.keys import tenant_column
from events.store import Store

__all__ = ()

pytestmark = pytest.mark.anyio

OLD = Vault(MasterKeys("k1", {"k1": b"1" * 32}))
NEW = Vault(MasterKeys("k2", {"k2": b"2" * 32, "k1": b"1" * 32}))
LOST = Vault(MasterKeys("k0", {"k0": b"0" * 32}))
URL = "https://host/mcp"


def row(row_id: str, owner: str | None, vault: Vault | None, legacy: Vault | None = None) -> dict[str, Any]:
    config: dict[str, Any] = {"a": [1, "é"]}
    if legacy is not None:
        config["encrypted_credentials"] = legacy.seal({"old": row_id}, owner=owner, row_id=row_id)
    return {
        "id": row_id,
        "tenant": tenant_column(owner),
        "ordinal": 1,
        "version": 3,
        "definition": msgspec.json.encode({"name": "x", "config": config}).decode(),
        "credentials": None if vault is None else vault.seal({"api_key": row_id}, owner=owner, row_id=row_id),
        "created_at": datetime.now(UTC),
        "updated_at": datetime.now(UTC),
    }


async def fill(store: Store, rows: list[dict[str, Any]]) -> None:
    token = OLD.seal({"access": "a"}, owner="u", row_id=sealed_as(URL))
    moment = datetime.now(UTC)
    tokens = {"tenant": tenant_column("u"), "server_url": URL, "version": 1, "sealed": token, "updated_at": moment}
    first = {name: rows[0][name] for name in ("id", "tenant", "definition")} | {"version": 1, "changed_at": moment}
    statements = [insert(tool_rows).values(**each) for each in rows]
    await store.write([*statements, insert(oauth_tokens).values(**tokens), insert(tool_row_versions).values(**first)])


async def opened(store: Store, vault: Vault) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for row_id, tenant, blob, definition in await store.read(
        select(tool_rows.c.id, tool_rows.c.tenant, tool_rows.c.credentials, tool_rows.c.definition)
    ):
        owner = tenant[1:] if tenant else None
        legacy = msgspec.json.decode(definition)["config"].get("encrypted_credentials")
        for sealed in (blob, legacy):
            if sealed is not None:
                assert key_id(sealed) == vault.current
                found.setdefault(row_id, {}).update(vault.open(sealed, owner=owner, row_id=row_id))
    return found


@pytest.fixture
async def store(journal_url: str) -> Any:
    async with Engine.open(journal_url) as engine:
        yield engine.log.store


async def test_everything_stored_is_sealed_anew_and_again_changes_nothing(store: Store) -> None:
    many = [row(f"t{number:03}", ("u", None)[number % 2], OLD) for number in range(230)]
    await fill(
        store, [row("a", "u", OLD, OLD), row("b", None, None, OLD), row("c", "v", None), row("d", "v", NEW), *many]
    )
    before = await uses_of_keys(store, NEW)
    assert before == [
        KeyUse(key="k2", current=True, known=True, rows=1),
        KeyUse(key="k1", current=False, known=True, rows=234, tokens=1),
    ]
    told: list[int] = []
    rotation = await rotate(store, NEW, told.append)
    assert (rotation.key, rotation.renewed, rotation.already, rotation.failed) == ("k2", 235, 1, ())
    assert told[-1] == 236
    alone = Vault(MasterKeys("k2", {"k2": b"2" * 32}))
    assert await uses_of_keys(store, alone) == [KeyUse(key="k2", current=True, known=True, rows=235, tokens=1)]
    secrets = await opened(store, alone)
    assert secrets["a"] == {"api_key": "a", "old": "a"}
    assert secrets["b"] == {"old": "b"}
    assert secrets["d"] == {"api_key": "d"}
    assert all(secrets[each["id"]] == {"api_key": each["id"]} for each in many)
    ((sealed,),) = await store.read(select(oauth_tokens.c.sealed))
    assert alone.open(sealed, owner="u", row_id=sealed_as(URL)) == {"access": "a"}
    ((kept,),) = await store.read(select(tool_rows.c.definition).where(tool_rows.c.id == "c"))
    assert msgspec.json.decode(kept) == {"name": "x", "config": {"a": [1, "é"]}}
    again = await rotate(store, NEW)
    assert (again.renewed, again.already) == (0, 236)
    ((same,),) = await store.read(select(oauth_tokens.c.sealed))
    assert same == sealed


async def test_what_does_not_open_stays_as_it_is_and_is_reported(store: Store) -> None:
    broken = row("b", "u", OLD) | {"credentials": "canary-no-blob"}
    moved = row("m", "u", OLD) | {"tenant": tenant_column("v")}
    await fill(store, [row("a", "u", OLD), broken, moved, row("l", "u", LOST)])
    rotation = await rotate(store, NEW)
    assert rotation.renewed == 2
    assert sorted(fault.split(":")[0] for fault in rotation.failed) == [
        "credentials of tool row 'b'",
        "credentials of tool row 'l'",
        "credentials of tool row 'm'",
    ]
    assert "canary" not in repr(rotation)
    uses = {use.key: (use.known, use.rows) for use in await uses_of_keys(store, NEW)}
    assert uses == {"k2": (True, 1), "": (False, 1), "k0": (False, 1), "k1": (True, 1)}
    ((kept,),) = await store.read(select(tool_rows.c.credentials).where(tool_rows.c.id == "b"))
    assert kept == "canary-no-blob"


class Interfered:
    """A store in which somebody stores something else just before the rotation writes, or that fails then."""

    def __init__(self, store: Store, breaks: bool) -> None:
        self._store = store
        self._breaks = breaks
        self.writes = 0

    async def read(self, statement: Any) -> Any:
        return await self._store.read(statement)

    async def write(self, statements: Any) -> list[int]:
        self.writes += 1
        if self.writes == 1 and not self._breaks:
            fresh = OLD.seal({"api_key": "newer"}, owner="u", row_id="t000")
            changed = update(tool_rows).where(tool_rows.c.id == "t000").values(credentials=fresh)
            await self._store.write([changed])
        if self.writes == 2 and self._breaks:
            raise LogUnavailable("the disk is full")
        return await self._store.write(statements)


async def test_what_is_stored_meanwhile_is_not_overwritten_and_is_sealed_anew_as_well(store: Store) -> None:
    await fill(store, [row(f"t{number:03}", "u", OLD) for number in range(3)])
    rotation = await rotate(Interfered(store, False), NEW)  # type: ignore[arg-type]
    assert (rotation.renewed, rotation.failed) == (4, ())
    assert (await opened(store, NEW))["t000"] == {"api_key": "newer"}


async def test_interrupted_it_goes_on_where_it_stood(store: Store) -> None:
    await fill(store, [row(f"t{number:03}", "u", OLD) for number in range(150)])
    with pytest.raises(LogUnavailable):
        await rotate(Interfered(store, True), NEW)  # type: ignore[arg-type]
    rotation = await rotate(store, NEW)
    assert (rotation.renewed, rotation.already) == (51, 100)
    assert len(await opened(store, NEW)) == 150
