"""The operations of an OpenAPI document, a Postman collection or a curl command, for the row of an api_tool."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ParamSpec

import click
import msgspec

from engine.credentials import Credentials

__all__ = ("Brought", "ImportFiles", "imported", "importing", "say_skipped", "say_withheld")

_SHOWN = 20
P = ParamSpec("P")


class ImportFiles(msgspec.Struct, frozen=True, kw_only=True):
    """What a row is to be made of.

    :ivar openapi: an OpenAPI or Swagger document, or a Postman collection
    :ivar curl: a curl command
    :ivar environment: the export of a Postman environment
    """

    openapi: str | None = None
    curl: str | None = None
    environment: str | None = None
    base_url: str | None = None

    def __bool__(self) -> bool:
        return self != ImportFiles()


def importing(function: Callable[P, Any]) -> Callable[P, Any]:
    """Give a command the options that say what a row is to be made of."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


_OPTIONS = (
    click.option(
        "--openapi", metavar="FILE", help="Of api_tool: an OpenAPI or Swagger document, or a Postman collection."
    ),
    click.option("--environment", metavar="FILE", help="The export of a Postman environment, for its collection."),
    click.option("--curl", metavar="FILE", help="Of api_tool: the request of a curl command; - reads standard input."),
    click.option("--base-url", metavar="URL", help="Where the document's paths are, if it does not say."),
)


class Brought(msgspec.Struct, frozen=True, kw_only=True):
    """What an import brings to a row; nothing, if none was wanted.

    :ivar requirements: the secrets that its operations take
    :ivar secrets: those that were found in it
    :ivar withheld: operations that take credentials where they do not go yet
    """

    title: str = ""
    config: dict[str, Any] = {}
    requirements: dict[str, Any] = {}
    secrets: Credentials = {}
    skipped: tuple[Any, ...] = ()
    withheld: tuple[Any, ...] = ()


def imported(files: ImportFiles) -> Brought:
    """Read what a row is to be made of.

    :raises Refused: if a file cannot be read, or holds nothing that can be called
    """
    from engine.cli.config_file import read_file

    openapi, curl, environment = files.openapi, files.curl, files.environment
    if openapi and curl:
        raise click.UsageError("give --openapi or --curl, not both")
    if environment and not openapi:
        raise click.UsageError("--environment goes with --openapi")
    if openapi:
        from engine.api.importing.document import import_document

        values = None if environment is None else read_file(environment)
        found = import_document(read_file(openapi), environment=values, base_url=files.base_url)
    elif curl:
        from engine.api.importing.curl import import_curl

        found = import_curl(read_file(curl).decode("utf-8", "replace"))
    else:
        return Brought()
    if not found.actions:
        from events.errors import Refused

        reasons = "; ".join(f"{each.operation}: {each.reason}" for each in found.skipped[:3])
        raise Refused(f"{openapi or curl} has nothing that can be called{f' ({reasons})' if reasons else ''}")
    return Brought(
        title="".join(filter(str.isprintable, found.title))[:100],
        config=found.config,
        requirements=found.requirements,
        secrets=dict(found.secrets),
        skipped=found.skipped,
        withheld=found.withheld,
    )


def say_skipped(skipped: Iterable[Any]) -> None:
    """Say on standard error what was left out, and why."""
    from engine.cli.output import note

    every = list(skipped)
    for each in every[:_SHOWN]:
        note(f"{each.operation} is left out: {each.reason}")
    if len(every) > _SHOWN:
        note(f"and {len(every) - _SHOWN} more are left out; --json lists them all")


def say_withheld(withheld: Iterable[Any]) -> None:
    """Say on standard error which operations are refused until their origin is trusted."""
    from engine.cli.output import note

    every = list(withheld)
    for each in every[:_SHOWN]:
        note(f"{each.operation} is refused for now: {each.reason} (calljournal tools edit ID --trust URL)")
    if len(every) > _SHOWN:
        note(f"and {len(every) - _SHOWN} more are refused for now; --json lists them all")
