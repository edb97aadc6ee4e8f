"""One canary of every kind of secret, used by a tool in every way there is, and looked for wherever something is shown.

(DESIGN 8, 7.)
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import msgspec
import pytest

from engine import Engine, Settings, Tool, ToolContext, ToolResult, ToolRow
from engine.contract import InputRequired
from engine.credentials import Vault
from engine.mcp.oauth_grant import Grant
from engine.mcp.token_store import TokenStore
from engine.rekeying import rotate, uses_of_keys
from events import Executed, Failed, Paused, to_wire
from tests.engine.gating import resumed
from tests.engine.staging import CONTEXT, call, events_of, staged_engine
from tests.engine.station import Station

__all__ = ()

pytestmark = pytest.mark.anyio

KEY = bytes(range(100, 132))
CREDENTIALS: dict[str, Any] = {
    "bearer": "canary bearer/+é-1f",
    "header_key": "canary-header-2f",
    "query_key": "canary query&key=3f",
    "path_key": "canary/path%4f",
    "username": "canary-user-5f",
    "password": 'canary "basic"\\6f',
    "oauth": {"access_token": "canary-oauth-7f", "refresh_token": "canary-refresh-8f"},
}
PASSWORD = "canary-write-only-9f"
PIN = 90210777
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "way": {"type": "string"},
        "note": {"type": "string"},
        "password": {"type": "string", "writeOnly": True},
        "inner": {"type": "object", "properties": {"pin": {"type": "integer", "writeOnly": True}}},
    },
    "required": ["way"],
    "additionalProperties": False,
}


def values(content: Any) -> Iterator[str]:
    if isinstance(content, dict):
        for item in content.values():
            yield from values(item)
    else:
        yield str(content)


def forms(secret: str) -> set[str]:
    """Return a secret as it is, URL-encoded, in JSON, and in base64, whatever stands before it."""
    content = secret.encode()
    shifted = [base64.b64encode(bytes(before) + content)[4:-4].decode() for before in range(3)]
    escaped = {repr(secret)[1:-1], ascii(secret)[1:-1], json.dumps(secret)[1:-1], secret.replace("\\", "\\\\")}
    return {secret, quote(secret), quote(secret, ""), urlencode({"": secret})[1:], *escaped, *shifted}


SECRETS = (*values(CREDENTIALS), PASSWORD, str(PIN))
FORBIDDEN = frozenset().union(*map(forms, SECRETS), {base64.b64encode(KEY).decode(), KEY.hex(), repr(KEY)[2:-1]})


def clean(content: str | bytes) -> None:
    text = content.decode(errors="surrogateescape") if isinstance(content, bytes) else content
    assert [form for form in FORBIDDEN if form in text] == []


def said_of(config: dict[str, Any], arguments: dict[str, Any]) -> str:
    """Return what a careless server says: everything that it was sent, in each way it was sent."""
    basic = base64.b64encode(f"{config['username']}:{config['password']}".encode()).decode()
    return (
        f"401 for GET /{quote(config['path_key'], '')}?{urlencode({'k': config['query_key']})} "
        f"Authorization: Bearer {config['bearer']} / Basic {basic} X-API-Key: {config['header_key']} "
        f"token={config['oauth']['access_token']} {json.dumps(config['oauth'])} "
        f"{base64.b64encode(b'x' + config['bearer'].encode()).decode()} "
        f"{json.dumps(arguments, ensure_ascii=False)} {quote(str(arguments.get('password')))}"
    )


class Careless(Tool):
    """Uses all of its secrets, and keeps none of them to itself."""

    name = "careless"
    given: list[dict[str, Any]]

    def get_config_requirements(self) -> dict[str, Any]:
        return {"*": {"secret": True}}

    def get_actions_metadata(self) -> list[dict[str, Any]]:
        said = {"name": "bump", "description": "It bumps.", "parameters": SCHEMA}
        return [said, {**said, "name": "asked", "require_approval": True}]

    def preview_decision(self, action_name: str, arguments: dict[str, Any]) -> tuple[bool, bool]:
        if arguments["way"] == "preview":
            raise ValueError(said_of(self.config, arguments))
        return False, False

    def get_artifact_id(self, action_name: str, /, **kwargs: Any) -> str:
        return f"artifact {self.config['header_key']}"

    async def execute_action(self, action_name: str, context: ToolContext, /, **kwargs: Any) -> Any:
        self.given.append(kwargs)
        said = said_of(self.config, kwargs)
        context.annotate("careless", said)
        match kwargs["way"]:
            case "raises":
                raise ConnectionError(said, {"headers": said}) from ValueError(said)
            case "reports":
                return ToolResult({"error": said, said: [said], "pin": kwargs["inner"]["pin"]}, status="error")
            case "asks" if context.request is None:
                return InputRequired({"state": said}, said)
            case "yields":
                return (each for each in (said, {"said": said}))
        return said


ARGUMENTS: dict[str, Any] = {
    "note": f"with {' '.join(values(CREDENTIALS))} and {base64.b64encode(CREDENTIALS['bearer'].encode()).decode()}",
    "password": PASSWORD,
    "inner": {"pin": PIN},
}


async def use(engine: Engine) -> list[Any]:
    """Call the tool in every way, and return all that is shown of it."""
    shown: list[Any] = []
    for way in ("returns", "raises", "reports", "yields", "preview", "asks"):
        events = await events_of(engine, call({"way": way, **ARGUMENTS}, call_id=way))
        last = events[-1]
        if isinstance(last, Paused) and last.pause_type == "requires_input":
            events += [event async for event in engine.submit_result(f"m:{way}", {"typed": ARGUMENTS["note"]}, CONTEXT)]
        assert isinstance(events[-1], Paused if way == "preview" else Failed if way == "raises" else Executed), events
        shown += events
    waits = await events_of(engine, call({"way": "returns", **ARGUMENTS}, name="asked", call_id="asked"))
    edited = to_wire(waits[-1])["arguments"] | {"way": "reports"}
    shown += [*waits, await engine.decide("m:asked", approve=True, by="ada", user_id="u", arguments=edited)]
    shown.append(await resumed(engine, "m:asked"))
    invalid = ({"password": PASSWORD, "note": 1}, f'{{"password": "{PASSWORD}', {"way": "x", **ARGUMENTS, "more": 1})
    for number, arguments in enumerate(invalid):
        shown += await events_of(engine, call(arguments, call_id=f"invalid{number}"))
    shown += [*map(to_wire, shown[:]), engine, engine.statistics(), engine.rows]
    shown.append(await engine.tool_results("m", user_id="u", family="openai"))
    shown += [await engine.attempt(f"m:{way}", user_id="u") for way in ("returns", "raises", "preview", "asked")]
    return shown


async def test_case_otel_03_no_canary_of_any_kind_is_kept_or_shown_anywhere(
    sqlite_url: str, station: Station, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("CALLJOURNAL_MASTER_KEY", base64.b64encode(KEY).decode())
    Careless.given = []
    row = ToolRow(id="t1", name="careless", user_id="u", config=dict(CREDENTIALS))
    before = msgspec.json.encode(ARGUMENTS)
    async with staged_engine(sqlite_url, Careless, rows=[], settings=Settings()) as engine:
        shown = [await engine.rows.add(row, user_id="u", by="ann"), *await use(engine)]
        vault = Vault()
        await store_token(engine, vault)
        shown += [vault, await uses_of_keys(engine.log.store, vault), await rotate(engine.log.store, vault)]
        shown += [await engine.rows.list(user_id="u"), await engine.rows.versions("t1", user_id="u")]
    clean(repr(shown))
    clean(msgspec.json.encode(shown, enc_hook=repr))
    traces = station.all_of_it()
    assert "careless" in traces
    assert "execute_tool" in traces
    clean(traces)
    clean(caplog.text + repr([(record.args, record.exc_text) for record in caplog.records]))
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    kept = b"".join(each.read_bytes() for each in path.parent.glob(f"{path.name}*"))
    assert b"careless" in kept
    clean(kept)
    # The tool got them all the same, and nothing of the caller's was changed.
    assert [{**each, "way": ""} for each in Careless.given] == [{**ARGUMENTS, "way": ""}] * 7
    assert msgspec.json.encode(ARGUMENTS) == before


async def store_token(engine: Engine, vault: Vault) -> None:
    oauth = CREDENTIALS["oauth"]
    grant = Grant(
        consent="c", client_metadata={"client_secret": oauth["refresh_token"]}, access_token=oauth["access_token"]
    )
    await TokenStore(engine.log.store, vault, "u", "https://host/mcp").put(grant)
