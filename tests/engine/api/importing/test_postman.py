"""A Postman collection, in both formats: what is imported sends exactly what the collection would have sent."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import msgspec
import pytest

from engine import Settings, ToolRow
from engine.api.importing import Imported
from engine.credentials import MasterKeys, Vault
from events import Executed, Paused
from tests.engine.api.calls import LOCAL
from tests.engine.api.importing.collections import collection, imported_collection, request
from tests.engine.api.raw_server import RawServer, raw_server
from tests.engine.gating import resumed
from tests.engine.staging import call, outcome_of, staged_engine

__all__ = ()

pytestmark = pytest.mark.anyio

KEYS = MasterKeys("k1", {"k1": b"1" * 32})
CANARY = "hush-4711-canary"
PDF = b"%PDF-1.7 manifest"


def auth(version: str, kind: str, **settings: str) -> dict[str, Any]:
    """Return an authentication as each format has it."""
    if version == "2.0.0":
        return {"type": kind, kind: settings}
    return {"type": kind, kind: [{"key": key, "value": text, "type": "string"} for key, text in settings.items()]}


LIST_BAYS = {
    "raw": "{{base}}/docks/:dock/bays?page=2",
    "host": ["{{base}}"],
    "path": ["docks", ":dock", "bays"],
    "query": [
        {"key": "page", "value": "{{page}}"},
        {"key": "free", "value": "true", "disabled": True, "description": "Free ones only"},
    ],
}
OPEN_DOCK = {
    "mode": "raw",
    "raw": '{"ship": "{{ship}}", /* t */ "load": {{load}}, "crates": [1, 2], "pilot": {"name": "Ida"}}',
    "options": {"raw": {"language": "json"}},
}
HAND_IN = {
    "mode": "formdata",
    "formdata": [
        {"key": "note", "value": "all told", "type": "text"},
        {"key": "paper", "type": "file", "src": "/home/ida/paper.pdf"},
    ],
}
STAMP = {
    "mode": "urlencoded",
    "urlencoded": [
        {"key": "ink", "value": "red & blue"},
        {"key": "copies", "value": "3"},
        {"key": "seal", "value": "x", "disabled": True},
    ],
}
ASK = {"query": "query Q($dock: ID!) { dock(id: $dock) { bays } }", "variables": ""}


def harbour(version: str) -> dict[str, Any]:
    """Return a collection of a harbour's API."""
    by = "id" if version == "2.0.0" else "key"
    url = {**LIST_BAYS, "variable": [{by: "dock", "value": "7", "description": "Its number"}]}
    headers = [{"key": "X-Tenant", "value": "{{tenant}}"}, {"key": "Accept-Encoding", "value": "br"}]
    about = {"content": "Bays of one dock.", "type": "text/plain"}
    stamp = auth(version, "apikey", key="X-Stamp", value=CANARY, **{"in": "header"})
    docks = [
        request(url, name="List bays", description=about, header=headers),
        request("{{base}}/docks?dry=1", "POST", "Open dock", body=OPEN_DOCK),
    ]
    papers = [
        request("{{base}}/papers", "PUT", "Hand in", body=HAND_IN),
        request("{{base}}/papers/{{year}}/stamp", "PATCH", "Stamp", auth=stamp, body=STAMP),
        request("{{base}}/graph", "POST", "Ask", auth={"type": "noauth"}, body={"mode": "graphql", "graphql": ASK}),
    ]
    return collection(
        {"name": "Docks", "item": docks},
        {
            "name": "Papers",
            "auth": auth(version, "basic", username="clerk", password="{{clerk_password}}"),
            "item": papers,
        },
        version=version,
        auth=auth(version, "bearer", token="{{token}}"),
        variable=[
            {by: "base", "value": "{{scheme}}://ignored.example"},
            {by: "scheme", "value": "http"},
            {by: "token", "value": CANARY},
            {by: "page", "value": 2},
        ],
        event=[{"listen": "prerequest", "script": {"exec": ["pm.sendRequest('http://evil.example')"]}}],
    )


def environment(origin: str) -> dict[str, Any]:
    """Return the export of an environment."""
    values = [
        {"key": "base", "value": f"{origin}/v1", "enabled": True},
        {"key": "tenant", "value": "north", "type": "default"},
        {"key": "clerk_password", "value": f"{CANARY}-2", "type": "secret"},
        {"key": "page", "value": "9", "enabled": False},
    ]
    return {"name": "Local", "values": values, "_postman_variable_scope": "environment"}


async def sent(
    server: RawServer, engine: Any, imported: Imported, name: str, arguments: dict[str, Any], number: int
) -> tuple[str, str, dict[str, str | None], bytes]:
    """Call an action, approving it where it asks, and return what reached the server."""
    outcome = await outcome_of(engine, call(arguments, name=name, call_id=f"c{number}"))
    assert isinstance(outcome, Paused) is imported.actions[name]["require_approval"]
    if isinstance(outcome, Paused):
        await engine.decide(f"m:c{number}", approve=True, by="u", user_id="u")
        outcome = await resumed(engine, f"m:c{number}")
    assert isinstance(outcome, Executed), outcome
    got = server.last
    names = ("authorization", "x-tenant", "x-stamp", "content-type")
    return got.method, got.target, {each: got.header(each) for each in names if got.header(each)}, got.body


@pytest.mark.parametrize("version", ["2.0.0", "2.1.0"])
def test_what_is_secret_is_told_apart_and_what_is_left_out_is_said(version: str) -> None:
    imported = imported_collection(harbour(version), environment=environment("http://a.example"))
    assert list(imported.actions) == [
        "Docks_List_bays",
        "Docks_Open_dock",
        "Papers_Hand_in",
        "Papers_Stamp",
        "Papers_Ask",
    ]
    assert imported.secrets == {
        "token": CANARY,
        "username": "clerk",
        "password": f"{CANARY}-2",
        "x_stamp": CANARY,
    }
    assert CANARY not in repr((imported.config, imported.skipped, imported.requirements, imported.title))
    assert {each.operation for each in imported.skipped} == {
        "GET Docks / List bays: header Accept-Encoding",
        "every script",
    }


@pytest.mark.parametrize("version", ["2.0.0", "2.1.0"])
async def test_each_request_reaches_the_server_as_the_collection_has_it(sqlite_url: str, version: str) -> None:
    with raw_server() as server:
        imported = imported_collection(harbour(version), environment=environment(server.origin))
        sealed = Vault(KEYS).seal(imported.secrets, owner="u", row_id="t1")
        row = ToolRow(id="t1", name="api_tool", user_id="u", config=imported.config, credentials=sealed)
        settings = Settings(net=LOCAL, master_keys=KEYS)
        async with staged_engine(sqlite_url, rows=[row], settings=settings) as engine:
            bearer, basic = f"Bearer {CANARY}", "Basic " + b64encode(f"clerk:{CANARY}-2".encode()).decode()
            method, target, headers, body = await sent(server, engine, imported, "Docks_List_bays", {"dock": "a/b"}, 1)
            assert (method, target, body) == ("GET", "/v1/docks/a%2Fb/bays?page=2", b"")
            assert (headers["authorization"], headers["x-tenant"]) == (bearer, "north")
            given = {"ship": "Ada", "load": 4.5}
            method, target, headers, body = await sent(server, engine, imported, "Docks_Open_dock", given, 2)
            assert (method, target, headers["content-type"]) == ("POST", "/v1/docks?dry=1", "application/json")
            assert msgspec.json.decode(body) == given | {"crates": [1, 2], "pilot": {"name": "Ida"}}
            paper = {"paper": {"content": b64encode(PDF).decode(), "filename": "p.pdf"}}
            method, target, headers, body = await sent(server, engine, imported, "Papers_Hand_in", paper, 3)
            assert (method, target, headers["authorization"]) == ("PUT", "/v1/papers", basic)
            assert b'name="note"\r\n\r\nall told\r\n' in body
            assert b'name="paper"; filename="p.pdf"' in body
            assert PDF in body
            stamped = await sent(server, engine, imported, "Papers_Stamp", {"year": "1999"}, 4)
            form = {"x-stamp": CANARY, "content-type": "application/x-www-form-urlencoded"}
            assert stamped == ("PATCH", "/v1/papers/1999/stamp", form, b"ink=red+%26+blue&copies=3")
            asked = await sent(server, engine, imported, "Papers_Ask", {"variables": {"dock": 7}}, 5)
            assert asked[2].get("authorization") is None
            assert msgspec.json.decode(asked[3]) == {"query": ASK["query"], "variables": {"dock": 7}}
