"""``calljournal rules``: an operator's rules listed, added and revoked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, get_args

import anyio
import click
import msgspec

from engine.cli.durations import duration
from engine.cli.failure import DONE, NO
from engine.cli.options import Choice, shared_options, taking
from events.types import Effect

__all__ = ("rules",)

_EVERYONE = click.option("--everyone", is_flag=True, help="The rules of every tenant, instead of one's own.")
_BY = click.option("--by", metavar="NAME", help="Who changes it; else the name you are logged in with.")


@click.group(invoke_without_command=True)
@shared_options("database", "user", "as_json")
@click.pass_context
def rules(context: click.Context, database: str | None, user: str | None, as_json: bool | None) -> Any:
    """List, add and revoke the rules by which calls are allowed, asked about or denied.

    Without a subcommand: list.
    """
    context.obj = Choice(database=database, user=user, as_json=as_json).over(context.find_object(Choice) or Choice())
    return context.invoke(list_rules) if context.invoked_subcommand is None else None


@rules.command("list")
@_EVERYONE
@taking("database", "user", "as_json")
def list_rules(choice: Choice, everyone: bool) -> int:
    """Print the rules that hold, in their order; the first that matches a call decides."""
    _require_one(choice, everyone)
    anyio.run(partial(_list, choice, everyone))
    return DONE


async def _list(choice: Choice, everyone: bool) -> None:
    from engine.cli.output import Output
    from engine.cli.rule_lines import rules_table
    from engine.rule import EVERYONE

    output = Output(choice)
    async with _kept(choice) as kept:
        found = await kept.list(user_id=EVERYONE if everyone else choice.user)
    if output.as_json:
        for rule in found:
            output.record(msgspec.to_builtins(rule))
    else:
        output.console.print(rules_table(found) if found else "no rules")
    output.flush()


@rules.command("show")
@click.argument("rule_id", metavar="ID")
@_EVERYONE
@taking("database", "user", "as_json")
def show(choice: Choice, rule_id: str, everyone: bool) -> int:
    """Print every version of a rule, oldest first; an event's `rule:ID@VERSION` is one of them.

    Exit code 1: there is no such rule.
    """
    _require_one(choice, everyone)
    return DONE if anyio.run(partial(_show, choice, rule_id, everyone)) else NO


async def _show(choice: Choice, rule_id: str, everyone: bool) -> bool:
    from engine.cli.output import Output
    from engine.cli.rule_lines import version_line
    from engine.rule import EVERYONE

    output = Output(choice)
    async with _kept(choice) as kept:
        found = await kept.versions(rule_id, user_id=EVERYONE if everyone else choice.user)
    for version in found:
        if output.as_json:
            output.record(msgspec.to_builtins(version))
        else:
            output.console.print(version_line(version), soft_wrap=True)
    if not found and not output.as_json:
        output.console.print("there is no such rule")
    output.flush()
    return bool(found)


@rules.command("add")
@click.argument("verdict", type=click.Choice(("allow", "ask", "deny")))
@click.option("--tool", metavar="PATTERN", help="The tool's name; * ? [ab] match as in file names.")
@click.option("--tool-id", metavar="ID", help="The tool row's id.")
@click.option("--action", metavar="PATTERN", help="The action's name.")
@click.option("--effect", type=click.Choice(get_args(Effect)), help="What the action does to the world.")
@click.option("--when", "predicate", metavar="EXPRESSION", help="JMESPath over the arguments, e.g. 'amount > `100`'.")
@click.option("--conversation", metavar="ID", help="One conversation.")
@click.option("--headless/--watched", default=None, help="Only runs that nobody watches, or that somebody does.")
@click.option("--tenant", metavar="PATTERN", help="With --everyone: users whose id matches.")
@click.option("--message", metavar="TEXT", default="", help="Why; a denied call's model is told.")
@click.option("--for", "lasting", type=duration, metavar="TIME", help="How long it holds, e.g. 7d; else for ever.")
@click.option("--ordinal", type=click.IntRange(-(2**31) + 1, 2**31 - 1), metavar="N", help="Its place; else the last.")
@click.option("--id", "id", metavar="ID", help="What to call it; else an id is made.")
@_EVERYONE
@_BY
@taking("database", "user", "as_json")
def add(choice: Choice, /, everyone: bool, by: str | None, lasting: timedelta | None, **conditions: Any) -> int:
    """Add a rule: calls that meet all its conditions are allowed, asked about, or denied."""
    _require_one(choice, everyone)
    conversation = conditions.pop("conversation")
    given = {name: value for name, value in conditions.items() if value is not None}
    if conversation is not None:
        given["conversation_id"] = conversation
    if lasting is not None:
        given["expires_at"] = datetime.now(UTC) + lasting
    anyio.run(partial(_add, choice, everyone, by, given))
    return DONE


async def _add(choice: Choice, everyone: bool, by: str | None, given: dict[str, Any]) -> None:
    from engine.cli.working import person
    from engine.rule import EVERYONE, Rule

    async with _kept(choice) as kept:
        rule = await kept.add(Rule(**given), user_id=EVERYONE if everyone else choice.user, by=person(by))
    _print(choice, rule, "added")


@rules.command("revoke")
@click.argument("rule_id", metavar="ID")
@_EVERYONE
@_BY
@taking("database", "user", "as_json")
def revoke(choice: Choice, rule_id: str, everyone: bool, by: str | None) -> int:
    """End a rule, one that a decision made too; it holds for no call that begins from now on."""
    _require_one(choice, everyone)
    anyio.run(partial(_revoke, choice, rule_id, everyone, by))
    return DONE


async def _revoke(choice: Choice, rule_id: str, everyone: bool, by: str | None) -> None:
    from engine.cli.working import person
    from engine.rule import EVERYONE

    async with _kept(choice) as kept:
        rule = await kept.revoke(rule_id, user_id=EVERYONE if everyone else choice.user, by=person(by))
    _print(choice, rule, "revoked")


def _print(choice: Choice, rule: Any, verb: str) -> None:
    from engine.cli.output import Output
    from engine.cli.rule_lines import rule_line

    output = Output(choice)
    if output.as_json:
        output.record(msgspec.to_builtins(rule))
    else:
        output.console.print(rule_line(rule, verb), soft_wrap=True)
    output.flush()


def _require_one(choice: Choice, everyone: bool) -> None:
    if everyone and choice.user is not None:
        raise click.UsageError("--user names one tenant, --everyone the rules of all; give one of the two")


@asynccontextmanager
async def _kept(choice: Choice) -> AsyncIterator[Any]:
    from engine.cli.database import opened
    from engine.rules import Rules

    async with opened(choice.url) as log:
        yield Rules(log.store)
