"""What the engine knows of one callable action: its row, its tool and its metadata entry brought together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, cast, get_args

import msgspec

from engine.contract import Tool
from engine.journalled import journal_form
from engine.parameters import GROUPS, ActionGroup, declared_parameters
from engine.rows import ActionSettings, ToolRow
from events.keys import canonical_bytes, digest_of
from events.types import Effect

__all__ = ("Action", "fingerprint", "resolve_actions")

_EFFECTS: frozenset[str] = frozenset(get_args(Effect))
_KNOWN = frozenset(
    {"name", "description", "active", "require_approval", "effect", "idempotent", "timeout", "parameters", *GROUPS}
)
_SECRET_ENDS: tuple[str, ...] = (
    "secret",
    "password",
    "passwd",
    "passphrase",
    "token",
    "apikey",
    "credential",
    "credentials",
    "privatekey",
    "authorization",
    "cookie",
)


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """One action of one tool row.

    :ivar tool_id: the row's id
    :ivar tool_name: the name of the row's tool
    :ivar name: the action as the tool calls it, in any characters
    :ivar parameters: the whole JSON Schema, hidden and pinned properties included
    :ivar shown: what of it the model sees; the same object where nothing is hidden
    :ivar presets: visible defaults, used where the model sends nothing
    :ivar pinned: fixed values the model may not send
    :ivar hidden: every name the model may not send, the pinned ones included
    :ivar timeout: seconds
    :ivar groups: the parts of a request its properties go to; empty: all are the action's own
    :ivar request: what else a configured action says (url, method, body_content_type, …), as given
    :ivar configured: its definition is the row's config, not the tool's
    :ivar live_gate: None where nothing is asked at the moment of the call
    """

    tool_id: str
    tool_name: str
    name: str
    description: str = ""
    parameters: dict[str, Any]
    shown: dict[str, Any]
    presets: dict[str, Any] = {}
    pinned: dict[str, Any] = {}
    hidden: frozenset[str] = frozenset()
    groups: tuple[ActionGroup, ...] = ()
    request: dict[str, Any] = {}
    configured: bool = False
    effect: Effect = "write"
    idempotent: bool = False
    timeout: float = 120.0
    require_approval: bool = False
    live_gate: Literal["adds", "replaces"] | None = None
    active: bool = True
    client_side: bool = False
    synthesised: bool = False

    @property
    def has_live_gate(self) -> bool:
        """Whether the tool itself is asked at the moment of the call."""
        return self.live_gate is not None

    def __repr__(self) -> str:
        flags = "".join(
            f" {word}"
            for word, holds in (
                ("inactive", not self.active),
                ("needs approval", self.require_approval),
                ("live-gated", self.has_live_gate),
                ("client-side", self.client_side),
            )
            if holds
        )
        return f"<Action {self.tool_id}/{self.tool_name}.{self.name} {self.effect}{flags}>"


def resolve_actions(row: ToolRow, tool: type[Tool], metadata: Any) -> tuple[Action, ...]:
    """Return the row's actions in the order of their source, inactive ones included.

    The source is ``metadata`` (what the tool's ``get_actions_metadata`` returned) or, for a tool whose actions are in
    its row, ``row.config["actions"]``. Where ``row.actions`` is given, only the actions it names are the row's.
    Entries without a name are left out, and a name that comes twice counts once. An approval required by the entry or
    by the row's settings is required.
    """
    settings = None if row.actions is None else {item.name: item for item in row.actions}
    resolved: dict[str, Action] = {}
    for name, entry in _entries(row, tool, metadata):
        if settings is not None and name not in settings and not tool.actions_in_config:
            continue
        owner = (settings or {}).get(name) or ActionSettings(name=name)
        if name not in resolved:
            resolved[name] = _action(row, tool, entry, owner)
    return tuple(resolved.values())


def _entries(row: ToolRow, tool: type[Tool], metadata: Any) -> Iterable[tuple[str, dict[str, Any]]]:
    if tool.actions_in_config:
        configured = row.config.get("actions")
        if isinstance(configured, dict):
            for key, entry in configured.items():
                if isinstance(entry, dict) and key:
                    yield str(entry.get("name") or key), entry
            return
        metadata = configured
    for entry in metadata if isinstance(metadata, (list, tuple)) else ():
        if isinstance(entry, dict) and isinstance(entry.get("name"), str) and entry["name"]:
            yield entry["name"], entry


def _action(row: ToolRow, tool: type[Tool], entry: dict[str, Any], owner: ActionSettings) -> Action:
    parameters = declared_parameters(entry, presets=owner.presets, pinned=owner.pinned, hidden=owner.hidden)
    description = owner.description if owner.description is not None else entry.get("description")
    return Action(
        tool_id=row.id,
        tool_name=row.name,
        name=owner.name,
        description=description if isinstance(description, str) else "",
        parameters=parameters.schema,
        shown=parameters.shown,
        presets=parameters.presets,
        pinned=parameters.pinned,
        hidden=parameters.hidden,
        groups=parameters.groups,
        request={key: value for key, value in entry.items() if key not in _KNOWN} if tool.actions_in_config else {},
        configured=tool.actions_in_config,
        effect=_effect(entry, tool),
        idempotent=entry["idempotent"] if isinstance(entry.get("idempotent"), bool) else tool.idempotent,
        timeout=_timeout(entry, tool),
        require_approval=owner.require_approval or bool(entry.get("require_approval")),
        live_gate=tool.live_gate if callable(getattr(tool, "preview_decision", None)) else None,
        active=owner.active and entry.get("active", True) is not False,
        synthesised=row.synthesised,
    )


def _effect(entry: dict[str, Any], tool: type[Tool]) -> Effect:
    effect = entry.get("effect")
    if effect in _EFFECTS:
        return cast("Effect", effect)
    # A misspelt effect must not pass for a harmless one.
    return tool.effect if effect is None else "write"


def _timeout(entry: dict[str, Any], tool: type[Tool]) -> float:
    timeout = entry.get("timeout")
    if isinstance(timeout, (int, float)) and not isinstance(timeout, bool) and timeout > 0:
        return float(timeout)
    return tool.timeout


def fingerprint(action: Action, row: ToolRow, secret_keys: Iterable[str] = ()) -> str:
    """Return the SHA-256 (hex) of what an approval relies on: the action's definition and the row's public config.

    Left out of the config are the row's other configured actions, ``secret_keys`` (those the tool's config
    requirements call secret), and every key whose name ends as secrets' names do (``api_key``, ``X-Auth-Token``, …),
    at any depth.
    """
    secret = frozenset(secret_keys)
    config = {key: value for key, value in row.config.items() if key != "actions" or not action.configured}
    definition = {
        "tool": action.tool_name,
        "name": action.name,
        "description": action.description,
        "parameters": action.parameters,
        "hidden": sorted(action.hidden),
        "presets": action.presets,
        "pinned": action.pinned,
        "groups": [[group.name, group.visible, group.presets, group.pinned] for group in action.groups],
        "request": _public(action.request, secret),
        "client_side": action.client_side,
        "config": _public(config, secret),
    }
    return digest_of(canonical_bytes(journal_form(definition)))


def _public(value: Any, secret: frozenset[str]) -> Any:
    if isinstance(value, dict):
        return {key: _public(item, secret) for key, item in value.items() if not _is_secret(key, secret)}
    if isinstance(value, (list, tuple)):
        return [_public(item, secret) for item in value]
    return value


def _is_secret(key: Any, secret: frozenset[str]) -> bool:
    if not isinstance(key, str):
        return False
    plain = key.lower().replace("_", "").replace("-", "")
    return key in secret or plain.endswith(_SECRET_ENDS)
