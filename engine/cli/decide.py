"""``calljournal approve``, ``deny`` and ``resume``: a call that waits is let go on, or is not."""

from __future__ import annotations

from contextlib import aclosing
from datetime import timedelta
from functools import partial
from shlex import quote
from typing import Any

import anyio
import click
import msgspec

from engine.cli.durations import duration
from engine.cli.failure import DONE, NO, Interrupted
from engine.cli.options import Choice, taking

__all__ = ("approve", "deny", "edited_arguments", "resume")

_BY = click.option("--by", metavar="NAME", help="Who decides; else the name you are logged in with.")


@click.command()
@click.argument("key")
@click.option("--edit", metavar="JSON", help="Run these arguments instead of the model's: one JSON object.")
@click.option("--comment", metavar="TEXT", help="What to record with the decision.")
@click.option("--remember", type=duration, metavar="TIME", help="Allow the same in its conversation, e.g. for 1h.")
@_BY
@taking("database", "user", "tools", "as_json")
def approve(
    choice: Choice, key: str, edit: str | None, comment: str | None, remember: timedelta | None, by: str | None
) -> int:
    """Let a call go on that waits for approval.

    Nothing runs by it: `calljournal resume KEY` runs the call, or the application does. Exit code 1: its time was over.
    """
    arguments = None if edit is None else edited_arguments(edit)
    facts = {"approve": True, "comment": comment, "arguments": arguments, "remember": remember}
    return anyio.run(partial(_decide, choice, key, by, facts))


@click.command()
@click.argument("key")
@click.option("--reason", metavar="TEXT", help="Why: the model is told.")
@_BY
@taking("database", "user", "as_json")
def deny(choice: Choice, key: str, reason: str | None, by: str | None) -> int:
    """End a call that waits, without running it."""
    anyio.run(partial(_decide, choice, key, by, {"approve": False, "comment": reason}))
    return DONE


async def _decide(choice: Choice, key: str, by: str | None, facts: Any) -> int:
    from engine.cli.output import Output
    from engine.cli.plain import one_line
    from engine.cli.working import person, print_event, working
    from events.types import Approved

    output = Output(choice)
    async with working(choice) as engine:
        decided = await engine.decide(key, by=person(by), user_id=choice.user, **facts)
    print_event(output, decided)
    if not isinstance(decided, Approved):
        return NO
    if not output.as_json:
        user = "" if choice.user is None else f" --user {quote(choice.user)}"
        said = one_line(f"calljournal resume {quote(key)}{user}  runs it")
        output.console.print(said, style="dim", soft_wrap=True)
        output.flush()
    return DONE


@click.command()
@click.argument("key")
@taking("database", "user", "tools", "as_json")
def resume(choice: Choice, key: str) -> int:
    """Run a call that was approved.

    Exit code 1: it failed, was denied, or waits again, e.g. because its tool has changed since.
    """
    try:
        return DONE if anyio.run(_resume, choice, key) else NO
    except KeyboardInterrupt:
        raise Interrupted("interrupted; what had begun is recorded") from None


async def _resume(choice: Choice, key: str) -> bool:
    from engine.cli.output import Output
    from engine.cli.working import print_event, require_runnable, working
    from engine.context import CallContext
    from events.types import Executed

    output = Output(choice)
    completed = False
    async with working(choice) as engine:
        await require_runnable(engine, key, choice)
        async with aclosing(engine.resume(key, CallContext(user_id=choice.user))) as events:
            async for event in events:
                print_event(output, event)
                completed = isinstance(event, Executed) and event.status == "completed"
    return completed


def edited_arguments(text: str) -> dict[str, Any]:
    """Return arguments that a person wrote. :raises click.BadParameter: if they are not one JSON object"""
    from events.codec import decode_json

    try:
        arguments = decode_json(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
        raise click.BadParameter(f"it is no JSON: {error}", param_hint="'--edit'") from error
    if not isinstance(arguments, dict):
        raise click.BadParameter("it must be one JSON object", param_hint="'--edit'")
    return arguments
