"""What the engine knows of one callable action: its row, its tool and its metadata entry brought together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, cast, get_args

import msgspec

from engine.contract import Tool
from engine.journalled import journal_form
from engine.parameters import GROUPS, ActionGroup, declared_parameters
from engine.rows import ActionSettings, ToolRow
from engine.secret_names import ends_as_secret
from events.keys import canonical_bytes, digest_of
from events.types import Effect

__all__ = ("Action", "fingerprint", "resolve_actions")

_EFFECTS: frozenset[str] = frozenset(get_args(Effect))
_KNOWN = frozenset(
    {"name", "description", "active", "require_approval", "effect", "idempotent", "timeout", "parameters", *GROUPS}
)
_AS_IT_IS = ActionSettings(name="any")
_NO_ARGUMENTS = (ActionGroup("query_params", ()),)


class Action(msgspec.Struct, frozen=True):
    """One action of one tool row.

    :ivar tool_id: the row's id
    :ivar tool_name: the name of the row's tool
    :ivar name: the action as the tool calls it, in any characters
    :ivar parameters: the whole JSON Schema, hidden and pinned properties included
    :ivar shown: what of it the model sees; the same object where nothing is hidden
    :ivar presets: visible defaults, used where the model sends nothing
    :ivar pinned: fixed values the model may not send
    :ivar hidden: every name the model may not send, the pinned ones included
    :ivar groups: the parts of a request its properties go to; empty: all are the action's own
    :ivar request: what else a configured action says (url, method, body_content_type, …), as given
    :ivar configured: its definition is the row's config, not the tool's
    :ivar timeout: seconds
    :ivar live_gate: None where nothing is asked at the moment of the call
    """

    tool_id: str
    tool_name: str
    name: str
    description: str
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
    synthesised: bool = False
    client_side: bool = False

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


class _OfClass(msgspec.Struct, frozen=True):
    """What all of a row's actions have in common."""

    tool_id: str
    tool_name: str
    effect: Effect
    idempotent: bool
    timeout: float
    live_gate: Literal["adds", "replaces"] | None
    configured: bool
    synthesised: bool


def resolve_actions(row: ToolRow, tool: type[Tool], metadata: Any) -> tuple[Action, ...]:
    """Return the row's actions in the order of their source, inactive ones included.

    The source is ``metadata`` (what the tool's ``get_actions_metadata`` returned) or, for a tool whose actions are in
    its row, ``row.config["actions"]``. Where ``row.actions`` is given, only the actions it names are the row's, unless
    its config has them. Entries without a name are left out, and a name that comes twice counts once. An approval
    is required as the entry says, unless the row's settings say otherwise.
    """
    settings = {item.name: item for item in row.actions or ()}
    named_only = row.actions is not None and not tool.actions_in_config
    of_class = _OfClass(
        row.id,
        row.name,
        tool.effect,
        tool.idempotent,
        tool.timeout,
        tool.live_gate if callable(getattr(tool, "preview_decision", None)) else None,
        tool.actions_in_config,
        row.synthesised,
    )
    complete = getattr(tool, "completed_definition", None) if tool.actions_in_config else None
    resolved: dict[str, Action] = {}
    for name, stated in _entries(row.config.get("actions") if tool.actions_in_config else metadata):
        if name not in resolved and not (named_only and name not in settings):
            whole = stated if complete is None else complete(stated)
            resolved[name] = _action(name, whole, settings.get(name, _AS_IT_IS), of_class)
    return tuple(resolved.values())


def _entries(metadata: Any) -> Iterable[tuple[str, dict[str, Any]]]:
    """Yield (name, definition): of a list of named ones, or of an object by name."""
    if isinstance(metadata, dict):
        for key, content in metadata.items():
            if isinstance(content, dict) and isinstance(name := content.get("name", key), str) and name:
                yield name, content
        return
    for content in metadata if isinstance(metadata, (list, tuple)) else ():
        if isinstance(content, dict) and isinstance(name := content.get("name"), str) and name:
            yield name, content


def _action(name: str, metadata: dict[str, Any], owner: ActionSettings, of_class: _OfClass) -> Action:
    parameters = declared_parameters(metadata, presets=owner.presets, pinned=owner.pinned, hidden=owner.hidden)
    description = owner.description if owner.description is not None else metadata.get("description")
    idempotent = metadata.get("idempotent")
    # By place: by name, twenty fields take five times as long, and there is one for every action of every row.
    return Action(
        of_class.tool_id,
        of_class.tool_name,
        name,
        description if isinstance(description, str) else "",
        parameters.schema,
        parameters.shown,
        parameters.presets,
        parameters.pinned,
        parameters.hidden,
        parameters.groups or (_NO_ARGUMENTS if of_class.configured and _takes_nothing(metadata) else ()),
        _request(metadata) if of_class.configured else {},
        of_class.configured,
        _effect(metadata.get("effect"), of_class.effect),
        idempotent if isinstance(idempotent, bool) else of_class.idempotent,
        _timeout(metadata.get("timeout"), of_class.timeout),
        _asks(owner.require_approval, metadata.get("require_approval")),
        of_class.live_gate,
        owner.active and metadata.get("active") is not False,
        of_class.synthesised,
    )


def _asks(said: bool | None, stated: Any) -> bool:
    # Whatever is not exactly a waiver is none.
    return said is not False and bool(said or stated)


def _takes_nothing(metadata: dict[str, Any]) -> bool:
    """Tell whether a definition is a request without arguments."""
    return "url" in metadata and metadata.keys().isdisjoint(GROUPS)


def _request(metadata: dict[str, Any]) -> dict[str, Any]:
    if _KNOWN.issuperset(metadata):
        return {}
    return {key: item for key, item in metadata.items() if key not in _KNOWN}


def _effect(stated: Any, of_class: Effect) -> Effect:
    if stated is None:
        return of_class
    # A misspelt effect must not pass for a harmless one.
    return cast("Effect", stated) if isinstance(stated, str) and stated in _EFFECTS else "write"


def _timeout(stated: Any, of_class: float) -> float:
    if isinstance(stated, (int, float)) and not isinstance(stated, bool) and stated > 0:
        return float(stated)
    return of_class


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
    return isinstance(key, str) and (key in secret or ends_as_secret(key))
