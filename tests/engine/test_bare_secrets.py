"""Presets and pinned values are seen by all who use a row, so that no secret may stand there."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest
from msgspec.structs import replace

from engine import ActionSettings, Engine, Grantee, Tool
from engine.secret_names import ends_as_secret
from tests.engine.forecasts import CANARY, refused, row, storing

__all__ = ()

pytestmark = pytest.mark.anyio

TEXT = {"type": "string"}
PROPERTIES: dict[str, Any] = {
    **dict.fromkeys(("X-Api-Key", "api_token", "key", "page", "to", "token_kind", "Authorization"), TEXT),
    "token": {"type": "string", "enum": ["BTC", "ETH"]},
    "tokens": {"type": "integer"},
    "password": {"type": ["integer", "boolean", "null"]},
    "pin": {"type": "string", "writeOnly": True},
    "login": {"type": "object", "properties": {"code": {"type": "string", "writeOnly": True}}},
    "headers": {"type": "object"},
    "any": {},
}


class Bank(Tool):
    """Has parameters of many names."""

    name = "bank"

    def get_actions_metadata(self) -> list[dict[str, Any]]:
        return [{"name": "pay", "parameters": {"type": "object", "properties": PROPERTIES}}]

    def get_config_requirements(self) -> dict[str, Any]:
        return {"actions": {}, "*": {"secret": True}}

    async def execute_action(self, action_name: str, /, **kwargs: Any) -> Any:
        return kwargs


def pay(kind: str, **values: Any) -> list[ActionSettings]:
    said = ActionSettings(name="pay")
    return [replace(said, presets=values) if kind == "presets" else replace(said, pinned=values)]


BY_NAME: dict[str, dict[str, Any]] = {
    "X-Api-Key": {"X-Api-Key": CANARY},
    "api_token": {"api_token": CANARY},
    "Authorization": {"Authorization": f"Bearer {CANARY}"},
    "Proxy-Authorization": {"headers": {"Accept": "*/*", "Proxy-Authorization": CANARY}},
    "secret": {"any": [{"deep": {"secret": [CANARY]}}]},
    "(writeOnly)": {"pin": CANARY},
    "login": {"login": {"code": CANARY}},
}
BY_VALUE: tuple[dict[str, Any], ...] = (
    {"to": CANARY},
    {"to": f"Bearer {CANARY}"},
    {"to": f"https://bank.example/?k={CANARY}&p=1"},
    {"to": b64encode(CANARY.encode()).decode()},
    {"to": f"pay <{CANARY}>"},
    {"headers": {"Accept": [CANARY]}},
    {"headers": {CANARY: "x"}},
    {"any": 271828},
)
FINE: tuple[dict[str, Any], ...] = (
    {"page": "2", "key": "PRJ-7", "token_kind": "x", "token": "BTC", "tokens": 7, "password": True},
    {"headers": {"Accept": "*/*"}, "api_token": "", "any": {"cookie": None}, "to": "abc"},
)


def api() -> type[Tool]:
    return type("Api", (Bank,), {"name": "api", "actions_in_config": True})


async def test_what_sounds_like_a_secret_or_is_one_is_refused(journal_url: str) -> None:
    secrets = {"api_key": CANARY, "number": "271828", "short": "abc"}
    async with storing(journal_url, Bank) as engine:
        rows = engine.rows
        for kind in ("presets", "pinned"):
            for named, values in BY_NAME.items():
                said = await refused(
                    rows.add(row(name="bank", actions=pay(kind, **values)), user_id="u"), named, "'pay'"
                )
                assert "put it among the secrets" in said
        await _compared(engine, secrets)
        assert CANARY not in json.dumps(await rows.versions("w2", user_id="u"), default=str)


async def _compared(engine: Engine, secrets: dict[str, Any]) -> None:
    rows = engine.rows
    await rows.add(row("w2", name="bank", actions=pay("pinned", **FINE[0])), secrets=secrets, user_id="u")
    for kind in ("presets", "pinned"):
        for values in BY_VALUE:
            new = row("w3", name="bank", actions=pay(kind, **values))
            for work in (
                rows.add(new, secrets=secrets, user_id="u"),
                rows.edit("w2", user_id="u", actions=pay(kind, **values)),
            ):
                await refused(work, "one of the row's secrets", repr(next(iter(values))))
        for values in FINE:
            await rows.edit("w2", user_id="u", actions=pay(kind, **values))
    await rows.edit("w2", user_id="u", actions=pay("pinned", to="later-0"))
    await refused(rows.edit("w2", user_id="u", secrets={"new": "later-0"}), "'to' of 'pay'", "one of the row's secrets")
    await rows.edit("w2", user_id="u", secrets={"new": "later-1"})


async def test_configured_actions_are_looked_at_too(sqlite_url: str) -> None:
    action = {"headers": {"properties": {"X-Auth-Token": TEXT}}, "body": {"properties": {"to": TEXT}}}
    async with storing(sqlite_url, api()) as engine:
        await engine.rows.add(row(name="api", config={"actions": {"pay": action}, "k": CANARY}), user_id="u")
        for values in ({"X-Auth-Token": "x"}, {"to": CANARY}):
            await refused(engine.rows.edit("w1", user_id="u", actions=pay("pinned", **values)), "among the secrets")


async def test_who_may_not_see_the_secrets_is_not_told_by_guesses(sqlite_url: str) -> None:
    async with storing(sqlite_url, Bank) as engine:
        rows = engine.rows
        await rows.add(row(name="bank"), secrets={"api_key": CANARY}, user_id="u")
        await rows.share("w1", Grantee.user("b"), "editor", user_id="u")
        guesses = [pay("pinned", to=f"{CANARY}{more}") for more in ("", "x")]
        assert [(await rows.edit("w1", user_id="b", actions=guess)).actions for guess in guesses] == guesses
        await refused(rows.edit("w1", user_id="b", actions=pay("pinned", api_token="x")), "sounds like a secret")


def test_what_ends_as_secrets_do() -> None:
    secret = ("api_key", "X-API-Key", "token", "PASSWORD", "client-secret", "Cookie", "Authorization", "private_key")
    public = ("key", "max_tokens", "token_kind", "author", "session", "page", "")
    assert [name for name in (*secret, *public) if ends_as_secret(name)] == list(secret)
