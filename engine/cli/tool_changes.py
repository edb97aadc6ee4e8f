"""``calljournal tools add`` and ``edit``: rows configured from files, options and prompts."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import anyio
import click

from engine.cli.action_settings import ActionChange, changing_actions
from engine.cli.configuring import Given, Wanted, configuring
from engine.cli.failure import DONE
from engine.cli.importing import Brought, ImportFiles, importing
from engine.cli.options import Choice, taking
from engine.cli.tool_rows import BY, print_row

__all__ = ("add", "edit")

_IMPORTS: Final = "api_tool"


@click.command()
@click.argument("name", metavar="TOOL")
@configuring
@importing
@click.option("--label", metavar="TEXT", help="What you call it.")
@click.option("--inactive", is_flag=True, help="Keep it, but use it in no turn yet.")
@click.option("--id", "row_id", metavar="ID", help="Its id; else one is made.")
@BY
@taking("database", "user", "tools", "as_json")
def add(
    choice: Choice,
    /,
    name: str,
    label: str | None,
    inactive: bool,
    row_id: str | None,
    by: str | None,
    **given: Any,
) -> int:
    """Configure a tool for a user.

    On a terminal, what is missing is asked for. Secrets are asked for without being shown, or come from the
    environment; they are stored encrypted, and never printed.
    """
    from engine.cli.importing import imported
    from engine.cli.kept_rows import tools_alone
    from engine.rows import ToolRow

    files = ImportFiles(**{name: given.pop(name) for name in ImportFiles.__struct_fields__})
    if files and name != _IMPORTS:
        raise click.UsageError(f"--openapi, --environment, --curl and --base-url are for {_IMPORTS}")
    found = imported(files)
    said = Given(**given)
    row = ToolRow.new(name, label=found.title if label is None else label, active=not inactive)
    tools = tools_alone(choice)
    requirements = {**tools.requirements(row), **found.requirements}
    config = said.config(requirements, found.config)
    wanted = Wanted(config, {**found.secrets, **said.secrets(requirements)})
    wanted = wanted.completed(requirements, found.requirements)
    anyio.run(partial(_add, choice, row, row_id, wanted, by, found))
    return DONE


async def _add(choice: Choice, row: Any, row_id: str | None, wanted: Wanted, by: str | None, found: Brought) -> None:
    from msgspec import to_builtins
    from msgspec.structs import replace

    from engine.cli.importing import say_skipped, say_withheld
    from engine.cli.kept_rows import kept_rows
    from engine.cli.working import person

    row = replace(row, id=row.id if row_id is None else row_id, config=wanted.config)
    async with kept_rows(choice, make=True) as rows:
        kept = await rows.add(row, user_id=choice.user, secrets=wanted.secrets, by=person(by))
    say_skipped(found.skipped)
    say_withheld(found.withheld)
    left = {"skipped": found.skipped, "withheld": found.withheld}
    print_row(choice, kept, "added", **{name: to_builtins(each) for name, each in left.items() if each})


@click.command()
@click.argument("row_id", metavar="ID")
@configuring
@click.option("--unset", "dropped", metavar="KEY", multiple=True, help="Leave a key out; may be given again.")
@click.option("--forget-secret", "forgotten", metavar="KEY", multiple=True, help="Forget a stored secret.")
@click.option("--replace-secrets", is_flag=True, help="Forget every secret that is not given now, readable or not.")
@changing_actions
@click.option(
    "--trust", "trusted", metavar="ORIGIN", multiple=True, help="Of api_tool: where else its credentials may go."
)
@click.option("--label", metavar="TEXT", help="What you call it.")
@click.option("--active/--inactive", default=None, help="Use it in turns, or not.")
@click.option("--version", type=int, metavar="N", help="Only if this is its version.")
@BY
@taking("database", "user", "tools", "as_json")
def edit(
    choice: Choice,
    /,
    row_id: str,
    replace_secrets: bool,
    trusted: tuple[str, ...],
    label: str | None,
    active: bool | None,
    version: int | None,
    by: str | None,
    **more: Any,
) -> int:
    """Change a row: its configuration, its secrets, or what is said of its actions; the rest stays."""
    change = ActionChange(**{name: more.pop(name) for name in ActionChange.__struct_fields__})
    given = Given(**more)
    plain = {"label": label, "active": active, "replace_secrets": replace_secrets or None}
    changes: dict[str, Any] = {name: value for name, value in plain.items() if value is not None}
    if not changes and not change and not given and not trusted:
        raise click.UsageError("nothing was said that is to be changed")
    held = anyio.run(partial(_read, choice, row_id, version))
    changes |= _configured(choice, held, given)
    if trusted:
        changes["config"] = _trusting(changes.get("config", held.row.config), trusted)
    anyio.run(partial(_edit, choice, held, changes, change, by))
    return DONE


def _configured(choice: Choice, held: Any, given: Given) -> dict[str, Any]:
    """Return what changes of a row's configuration; people are asked here, outside of every event loop."""
    from engine.cli.kept_rows import tools_alone

    if not given:
        return {}
    requirements = tools_alone(choice).requirements(held.row)
    changes: dict[str, Any] = {}
    if given.changes_config:
        changes["config"] = given.config(requirements, held.row.config)
    secrets = given.secrets(requirements)
    return changes | ({"secrets": secrets} if secrets else {})


def _trusting(config: dict[str, Any], trusted: tuple[str, ...]) -> dict[str, Any]:
    """Return a configuration that trusts origins besides those that it trusted: where it said nothing, its own."""
    from engine.api.origins import guarded_origins, stated_origin

    known = config.get("trusted_origins")
    if known is None:
        own = guarded_origins(config.get("actions") or {}, config.get("security") or ())
        known = [origin for _, origin in own]
    return {**config, "trusted_origins": list(dict.fromkeys([*known, *map(stated_origin, trusted)]))}


async def _read(choice: Choice, row_id: str, version: int | None) -> Any:
    from engine.cli.kept_rows import kept_rows
    from events.errors import Conflict

    async with kept_rows(choice) as rows:
        kept = await rows.get(row_id, user_id=choice.user)
    if version not in (None, kept.row.version):
        raise Conflict(f"tool row {row_id!r} is at version {kept.row.version}, not {version}; look at it again")
    return kept


async def _edit(choice: Choice, kept: Any, changes: dict[str, Any], change: ActionChange, by: str | None) -> None:
    from engine.cli.kept_rows import kept_rows
    from engine.cli.working import person

    async with kept_rows(choice) as rows:
        if change:
            changes["actions"] = await change.settings(rows, kept.row.id, choice.user)
        row = await rows.edit(kept.row.id, user_id=choice.user, version=kept.row.version, by=person(by), **changes)
    print_row(choice, row, "changed" if row.version > kept.row.version else "unchanged")
