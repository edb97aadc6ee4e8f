"""``calljournal tools test`` and ``refresh``: whether a row works, and what its tool can do now."""

from __future__ import annotations

from functools import partial
from typing import Any

import anyio
import click
import msgspec

from engine.cli.failure import DONE, NO
from engine.cli.options import Choice, taking
from engine.cli.standing_in import Trial
from engine.cli.tool_rows import BY
from events.codec import decode_json
from events.errors import LogUnavailable, NotFound, Refused

__all__ = ("refresh", "test")


@click.command()
@click.argument("row_id", metavar="ID|NAME")
@click.option("--action", metavar="NAME", help="With --dry-run: the action that would be called.")
@click.option("--arguments", metavar="JSON", default="{}", help="What it would be called with.")
@click.option("--dry-run", is_flag=True, help="Print what a call would send, and send nothing.")
@taking("database", "user", "tools", "as_json")
def test(choice: Choice, row_id: str, action: str | None, arguments: str, dry_run: bool) -> int:
    """Make a row's tool, and ask it what it can do; a server behind it is asked too.

    With --action and --dry-run, the arguments are checked, and of an api_tool the exact request is printed, with its
    secrets masked. Exit code 1: the tool cannot be used.

    A tool's NAME, which is no row's id, tries the tool itself: each action says what it would send, and where the tests
    are at hand it is sent to the server that stands in for the real one there. Exit code 1: an action did not work.
    """
    found = anyio.run(partial(_without_row, choice, row_id))
    if found is not None:
        wanted = None if action is None else Trial(action, _decoded(arguments))
        return DONE if anyio.run(partial(_try, choice, row_id, found, wanted, dry_run)) else NO
    if (action is None) == dry_run:
        raise click.UsageError("--action and --dry-run belong together; `calljournal run` carries calls out")
    if action is not None:
        anyio.run(partial(_dry_run, choice, row_id, action, _decoded(arguments)))
        return DONE
    return DONE if anyio.run(partial(_test, choice, row_id)) else NO


async def _without_row(choice: Choice, name: str) -> Any:
    """Return the tool of a name that is no row's id; None: it is an id, or nothing that is known."""
    from engine.cli.kept_rows import kept_rows
    from engine.discovery import ToolManager
    from engine.row_changes import read_held

    try:
        tool = ToolManager(choice.tools).load_tool(name)
    except NotFound:
        return None
    try:
        async with kept_rows(choice) as rows:
            await read_held(rows.store, choice.user, name)
    except (NotFound, LogUnavailable):
        return tool
    return None


async def _try(choice: Choice, name: str, tool: Any, wanted: Trial | None, dry_run: bool) -> bool:
    from engine.cli.output import Output
    from engine.cli.tool_trial import try_tool
    from engine.cli.trial_lines import trial_text

    output = Output(choice)

    def tell(tried: Any) -> None:
        if output.as_json:
            output.record({"tool": name, **msgspec.to_builtins(tried)})
        else:
            output.console.print(trial_text(tried), soft_wrap=True)
        output.flush()

    return await try_tool(choice, name, tool, wanted, tell, dry_run=dry_run)


def _decoded(text: str) -> dict[str, Any]:
    try:
        arguments = decode_json(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise click.BadParameter(f"that is no JSON: {error}", param_hint="'--arguments'") from None
    if not isinstance(arguments, dict):
        raise click.BadParameter("that is no JSON object", param_hint="'--arguments'")
    return arguments


async def _test(choice: Choice, row_id: str) -> bool:
    from msgspec.structs import replace

    from engine.cli.kept_rows import kept_rows
    from engine.cli.output import Output, note
    from engine.row_changes import read_held

    output = Output(choice)
    async with kept_rows(choice) as rows:
        held = await read_held(rows.store, choice.user, row_id)
        if held.role != "owner":
            raise Refused(f"tool row {row_id!r} is shared to you; only its owner tests it, for that uses its secrets")
        try:
            rows.tools.checked(held.row, rows.tools.secrets(held.row))
            # As if nothing were kept of what it said before: that is what is to be found out.
            actions = await rows.tools.actions(replace(held.row, actions_metadata=None))
        except Refused as error:
            _print_tested(output, row_id, str(error), ())
            return False
    _print_tested(output, row_id, None, actions)
    if not actions:
        note(f"tool row {row_id!r} has no actions")
    return True


def _print_tested(output: Any, row_id: str, problem: str | None, actions: Any) -> None:
    from rich.text import Text

    from engine.cli.plain import one_line

    named = [
        {"name": each.name, "effect": each.effect, "require_approval": each.require_approval, "active": each.active}
        for each in actions
    ]
    if output.as_json:
        output.record({"id": row_id, "ok": problem is None, "problem": problem, "actions": named})
    elif problem is not None:
        output.console.print(Text(f"{row_id} cannot be used: {one_line(problem)}", style="red"), soft_wrap=True)
    else:
        output.console.print(Text(f"{row_id} works; {len(named)} actions", style="green"))
        for each in named:
            asks = ", needs approval" if each["require_approval"] else ""
            output.console.print(Text(f"  {one_line(each['name'])}  ({each['effect']}{asks})"), soft_wrap=True)
    output.flush()


async def _dry_run(choice: Choice, row_id: str, action_name: str, arguments: dict[str, Any]) -> None:
    from engine.cli.kept_rows import kept_rows
    from engine.cli.output import Output

    output = Output(choice)
    async with kept_rows(choice) as rows:
        kept = await rows.get(row_id, user_id=choice.user)
        tool = rows.tools.tool_of(kept.row)
        if tool.actions_in_config:
            from engine.api.dry_run import dry_run

            preview = dry_run(kept.row, action_name, arguments)
            record, text = msgspec.to_builtins(preview), str(preview)
        else:
            record = await _checked(rows, kept.row, action_name, arguments)
            text = str(msgspec.json.encode(record), "utf-8") + "\n"
    if output.as_json:
        output.record(record)
    else:
        from engine.cli.plain import visible

        output.console.print(visible(text), end="", soft_wrap=True)
    output.flush()


async def _checked(rows: Any, row: Any, action_name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return what a tool would be given. :raises Refused: if there is no such action, or the arguments do not fit"""
    from engine.actions import resolve_actions
    from engine.arguments import ArgumentChecker, sort_arguments

    known = {action.name: action for action in await rows.tools.actions(row)}
    metadata = row.actions_metadata
    if row.actions is not None:
        metadata = await rows.tools.metadata(row) if metadata is None else metadata
        known = {each.name: each for each in resolve_actions(row, rows.tools.tool_of(row), metadata)}
    action = known.get(action_name)
    if action is None:
        raise Refused(f"tool row {row.id!r} has no action {action_name!r} (there are: {', '.join(known) or 'none'})")
    problem = ArgumentChecker().validate(action, arguments)
    if problem is not None:
        raise Refused(problem)
    return {"action": action_name, "arguments": sort_arguments(action, arguments).kwargs}


@click.command()
@click.argument("row_id", metavar="ID")
@click.option("--dry-run", is_flag=True, help="Only say what has changed.")
@BY
@taking("database", "user", "tools", "as_json")
def refresh(choice: Choice, row_id: str, dry_run: bool, by: str | None) -> int:
    """Ask the server of a row (mcp_tool) what it offers now, and keep that with the row.

    From then on the server is not asked again, until the next refresh. What has changed is asked about anew where it
    was approved before.
    """
    anyio.run(partial(_refresh, choice, row_id, dry_run, by))
    return DONE


async def _refresh(choice: Choice, row_id: str, dry_run: bool, by: str | None) -> None:
    from engine.cli.kept_rows import kept_rows
    from engine.cli.output import Output, note
    from engine.cli.plain import one_line
    from engine.cli.working import person
    from engine.row_refresh import refresh as refreshed

    output = Output(choice)
    async with kept_rows(choice) as rows:
        found = await refreshed(rows, row_id, user_id=choice.user, by=person(by), keep=not dry_run)
    lists = {"added": found.added, "removed": found.removed, "changed": found.changed}
    if output.as_json:
        record: dict[str, Any] = {"id": row_id, "version": found.row.version, **lists, "same": found.same}
        output.record(record | {"kept": not dry_run})
    else:
        for verb, names in lists.items():
            for name in names:
                output.console.print(f"{verb:<8} {one_line(name)}", soft_wrap=True)
        output.console.print(f"{found.same} as before; {row_id}@{found.row.version}", soft_wrap=True)
    output.flush()
    for said in found.row.actions or ():
        if said.require_approval is False and said.name in found.changed:
            note(f"{said.name!r} has changed, and its approval is waived: look at it, or `tools edit --approval`")
