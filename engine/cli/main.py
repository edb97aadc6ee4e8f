"""``calljournal``: the entry point, and the one place where what went wrong becomes an exit code."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import click

from engine.cli.approvals import approvals
from engine.cli.credentials import credentials
from engine.cli.decide import approve, deny, resume
from engine.cli.doctor import doctor
from engine.cli.failure import BAD_INPUT, failure_of, report
from engine.cli.interruption import interruptible
from engine.cli.kept import kept
from engine.cli.maintain import migrate, rebuild, verify
from engine.cli.options import ENVIRONMENT, Choice, shared_options
from engine.cli.reconcile import reconcile
from engine.cli.rules import rules
from engine.cli.run import run
from engine.cli.secrecy import secrets_of
from engine.cli.show import attempts, events
from engine.cli.teams import teams
from engine.cli.tools import tools as tools_group

__all__ = ("calljournal", "main")


def _show_version(context: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked:
        try:
            said = version("calljournal")
        except PackageNotFoundError:
            said = "from its source, not installed"
        click.echo(f"calljournal {said}")
        context.exit()


@click.group(invoke_without_command=True)
@shared_options("database", "user", "tools", "as_json")
@click.option("--debug", is_flag=True, help="Show the program's own log, and where an error came from.")
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Say which.")
@click.pass_context
def calljournal(
    context: click.Context,
    debug: bool,
    database: str | None,
    user: str | None,
    tools: tuple[Path, ...],
    as_json: bool | None,
) -> None:
    """An event-sourced journal for the tool calls of LLM agents.

    Exit codes: 0 done; 1 done, and the answer is no (a call failed, a difference, a fault); 2 bad input;
    3 something needed is not there; 130 interrupted.
    """
    logging.getLogger("calljournal").setLevel(logging.DEBUG if debug else logging.CRITICAL)
    if debug:
        logging.basicConfig(format="calljournal: %(levelname)s %(name)s: %(message)s")
    context.obj = Choice(
        database=(os.environ.get(ENVIRONMENT) or None) if database is None else database,
        user=user,
        tools=tools,
        as_json=as_json,
    )
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
        context.exit(BAD_INPUT)


_WORK = (run, events, attempts, approvals, approve, deny, resume, rules, tools_group, teams, reconcile)
_CARE = (kept, credentials, verify, rebuild, migrate, doctor)

for _command in (*_WORK, *_CARE):
    calljournal.add_command(_command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; nothing is raised, a traceback needs ``--debug``.

    :param arguments: without the program's name; None: the process's own
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with interruptible():
            code = _invoke(given)
        if sys.stdout is not None:
            sys.stdout.flush()
    except BaseException as error:
        if "--debug" in given and not isinstance(error, click.ClickException | BrokenPipeError):
            raise
        failure = failure_of(error)
        report(failure, _secrets(given))
        _drop_output()
        return failure.code
    return code


def _invoke(arguments: list[str]) -> int:
    try:
        with calljournal.make_context("calljournal", arguments) as context:
            code = calljournal.invoke(context)
    except click.exceptions.Exit as ending:
        return ending.exit_code
    return code if isinstance(code, int) else 0


def _secrets(arguments: Sequence[str]) -> set[str]:
    # Wherever a URL was given: taking too much out of an error is better than too little.
    candidates = [os.environ.get(ENVIRONMENT, ""), *arguments]
    return {secret for text in candidates if "@" in text or "://" in text for secret in secrets_of(text)}


def _drop_output() -> None:
    """Keep the interpreter from flushing, at its end, what nobody takes."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
