"""``calljournal credentials``: under which master keys secrets are stored, and storing them under the current one."""

from __future__ import annotations

from functools import partial
from typing import Any

import anyio
import click
import msgspec

from engine.cli.failure import DONE, NO, Interrupted
from engine.cli.options import Choice, shared_options, taking

__all__ = ("credentials",)


@click.group()
@shared_options("database", "as_json")
@click.pass_context
def credentials(context: click.Context, database: str | None, as_json: bool | None) -> None:
    """See to the keys of what is stored encrypted.

    The master keys are those of CALLJOURNAL_MASTER_KEYS (several, the current one first) or CALLJOURNAL_MASTER_KEY,
    else of a key file in your folder for state.
    """
    context.obj = Choice(database=database, as_json=as_json).over(context.find_object(Choice) or Choice())


@credentials.command()
@taking("database", "as_json")
def status(choice: Choice) -> int:
    """Print how much is stored under which master key.

    Exit code 1: something is stored under a key that is not among yours.
    """
    return DONE if anyio.run(_status, choice) else NO


async def _status(choice: Choice) -> bool:
    from engine.cli.database import opened
    from engine.cli.output import Output
    from engine.credentials import Vault
    from engine.rekeying import uses_of_keys

    output = Output(choice)
    async with opened(choice.url) as log:
        uses = await uses_of_keys(log.store, Vault())
    if output.as_json:
        for use in uses:
            output.record(msgspec.to_builtins(use))
    else:
        output.console.print(_table(uses))
    output.flush()
    return all(use.known for use in uses)


def _table(uses: list[Any]) -> Any:
    from rich.text import Text

    from engine.cli.rendering import table_of

    table = table_of("key", "", "tool rows", "authorizations")
    for use in uses:
        said = "current" if use.current else "" if use.known else "NOT AMONG YOUR KEYS"
        table.add_row(Text(use.key or "?", style="bold"), said, str(use.rows), str(use.tokens))
    return table


@credentials.command()
@click.option("--new-key", is_flag=True, help="First put a new key into the key file, as the current one.")
@taking("database", "as_json")
def rotate(choice: Choice, new_key: bool) -> int:
    """Store everything under the current master key.

    Interrupted, the same command goes on. Afterwards an older key is needed only for values sealed within events.

    Exit code 1: something could not be opened; each such thing is a line.
    """
    try:
        return DONE if anyio.run(partial(_rotate, choice, new_key)) else NO
    except KeyboardInterrupt:
        raise Interrupted("interrupted; what is done is done, and the same command goes on") from None


async def _rotate(choice: Choice, new_key: bool) -> bool:
    from engine.cli.database import opened
    from engine.cli.output import Output, note, progress_bar
    from engine.credentials import Vault
    from engine.master_keys import add_key
    from engine.rekeying import rotate as renewed

    output = Output(choice)
    async with opened(choice.url, make=True) as log:
        if new_key:
            note(f"the key file has a new current key, {add_key()}")
        with progress_bar("rotate", "secrets") as progress:
            rotation = await renewed(log.store, Vault(), lambda done: progress(done, done))
    if output.as_json:
        output.record(msgspec.to_builtins(rotation))
    else:
        said = f"{rotation.renewed} sealed anew under key {rotation.key}, {rotation.already} were already"
        output.console.print(said)
    output.flush()
    for fault in rotation.failed:
        note(fault)
    return not rotation.failed
