"""What a command says of a row's actions: of one by options, or of all by a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, ParamSpec

import click
import msgspec
from msgspec.structs import replace

from engine.cli.config_file import read_content
from engine.configured_rows import Rows
from engine.rows import ActionSettings
from events.codec import decode_json
from events.errors import Refused

__all__ = ("ActionChange", "changing_actions")

P = ParamSpec("P")
_APPROVAL: Final = {"ask": True, "waive": False, "tool": None}


class ActionChange(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be changed; nothing of it given is nothing.

    :ivar file: a list of settings, or null: all actions as their tool has them
    :ivar action: the one action that the others speak of
    :ivar approval: a key of what its ``require_approval`` may be
    """

    actions_file: str | None = None
    action: str | None = None
    approval: str | None = None
    enabled: bool | None = None
    describe: str | None = None
    presets: tuple[str, ...] = ()
    pins: tuple[str, ...] = ()
    hides: tuple[str, ...] = ()
    plain: bool = False

    def __bool__(self) -> bool:
        return self != ActionChange()

    async def settings(self, rows: Rows, row_id: str, user_id: str | None) -> list[ActionSettings] | None:
        """Return the settings that the row is to have.

        :raises Refused: if the file holds none, or there is no such action
        """
        if self.actions_file is not None:
            if self != ActionChange(actions_file=self.actions_file):
                raise click.UsageError("--actions says everything of the actions; leave the other options out")
            return _from_file(self.actions_file)
        if self.action is None:
            raise click.UsageError("which action? say --action NAME")
        return await self._of_one(rows, row_id, user_id, self.action)

    async def _of_one(self, rows: Rows, row_id: str, user_id: str | None, name: str) -> list[ActionSettings]:
        from engine.row_changes import read_held

        row = (await read_held(rows.store, user_id, row_id)).row
        known = [action.name for action in await rows.tools.actions(row)]
        if name not in known:
            raise Refused(f"tool row {row_id!r} has no action {name!r} (there are: {', '.join(known[:30]) or 'none'})")
        configured = rows.tools.tool_of(row).actions_in_config
        # Where settings name the actions that a row has, saying something of one must not take the others away.
        named = row.actions if row.actions is not None else [ActionSettings(name=each) for each in known]
        said = {each.name: each for each in (row.actions or [] if configured else named)}
        said[name] = self._changed(
            ActionSettings(name=name) if self.plain else said.get(name, ActionSettings(name=name))
        )
        return list(said.values())

    def _changed(self, said: ActionSettings) -> ActionSettings:
        if self.approval is not None:
            said = replace(said, require_approval=_APPROVAL[self.approval])
        if self.enabled is not None:
            said = replace(said, active=self.enabled)
        if self.describe is not None:
            said = replace(said, description=self.describe or None)
        presets, pins = _values(self.presets, "--preset"), _values(self.pins, "--pin")
        return replace(
            said,
            presets={**{key: value for key, value in said.presets.items() if key not in pins}, **presets},
            pinned={**{key: value for key, value in said.pinned.items() if key not in presets}, **pins},
            hidden=tuple(dict.fromkeys([*said.hidden, *self.hides])),
        )


def changing_actions(function: Callable[P, Any]) -> Callable[P, Any]:
    """Give a command the options that say something of actions."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


_OPTIONS = (
    click.option("--actions", "actions_file", metavar="FILE", help="All that is said of its actions; - reads JSON."),
    click.option("--action", metavar="NAME", help="The action that the next options speak of."),
    click.option("--approval", "approval", flag_value="ask", help="A person must approve each call of it."),
    click.option(
        "--no-approval", "approval", flag_value="waive", help="Nobody must, though its tool says so; its owner alone."
    ),
    click.option("--tool-approval", "approval", flag_value="tool", help="As its tool says, as at first."),
    click.option("--enable/--disable", "enabled", default=None, help="Offer it, or not."),
    click.option("--describe", metavar="TEXT", help="What the model is told of it; empty: what its tool says."),
    click.option("--preset", "presets", metavar="KEY=JSON", multiple=True, help="A value where the model sends none."),
    click.option("--pin", "pins", metavar="KEY=JSON", multiple=True, help="A value that the model never sees."),
    click.option("--hide", "hides", metavar="KEY", multiple=True, help="A property that the model never sees."),
    click.option("--plain", is_flag=True, help="Forget what was said of it before."),
)


def _from_file(file: str) -> list[ActionSettings] | None:
    try:
        said = msgspec.convert(read_content(file), list[ActionSettings] | None)
    except msgspec.ValidationError as error:
        raise Refused(f"{file} is no list of what is said of actions: {error}") from error
    waived = [each.name for each in said or () if each.require_approval is False]
    if waived:
        from engine.cli.output import note

        # In what an older release printed, false was no waiver.
        note(f"{file} waives the approval of {', '.join(waived)}; null leaves it as the tool says")
    return said


def _values(pairs: tuple[str, ...], option: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise click.UsageError(f"{option} takes KEY=JSON, not {pair!r}")
        try:
            values[key] = decode_json(text)
        except (msgspec.DecodeError, RecursionError):
            values[key] = text
    return values
