"""The tools that the command line knows, and the rows it runs them with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from engine.config_check import missing_keys
from engine.contract import Scope, Tool
from engine.defaults import internal_row
from engine.discovery import Problem, ToolManager
from engine.loading import LoadFailure, actions_metadata
from engine.rows import ToolRow

__all__ = ("Catalogue", "CatalogueEntry", "read_catalogue")

_INTERNAL = ("think",)


class CatalogueEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One tool as the catalogue lists it.

    :ivar needs: keys of its configuration that a row must give
    """

    name: str
    display_name: str
    description: str
    actions: tuple[str, ...]
    effect: str
    default_on: bool
    internal: bool
    user_scoped: bool
    needs: tuple[str, ...]


class Catalogue(msgspec.Struct, frozen=True, kw_only=True):
    """Every tool found, and a row for each that needs no configuration.

    :ivar problems: what could not be taken, and why
    """

    entries: tuple[CatalogueEntry, ...]
    rows: tuple[ToolRow, ...]
    problems: tuple[Problem, ...]


async def read_catalogue(folders: Sequence[Path]) -> Catalogue:
    """Look at every tool there is: the built-in ones, the folders', the installed packages'."""
    manager = ToolManager(folders)
    classes = manager.load_tools() | {name: manager.load_tool(name) for name in _INTERNAL}
    entries: list[CatalogueEntry] = []
    problems: list[Problem] = []
    for name, tool in classes.items():
        try:
            entries.append(await _entry(name, tool))
        except LoadFailure as error:
            problems.append(Problem(name, str(error)))
    return Catalogue(
        entries=tuple(entries),
        rows=tuple(_row(entry) for entry in entries if not entry.needs and not entry.default_on),
        problems=(*manager.problems, *problems),
    )


def _row(entry: CatalogueEntry) -> ToolRow:
    # The same id on every machine: what a call is a repetition of must not depend on where it ran.
    if entry.internal:
        return internal_row(entry.name)
    # Synthesised, so that a row which the user keeps of the same tool goes before it.
    return ToolRow(id=f"cli-{entry.name}", name=entry.name, synthesised=True)


async def _entry(name: str, tool: type[Tool]) -> CatalogueEntry:
    needs = _needs(name, tool)
    return CatalogueEntry(
        name=name,
        display_name=tool.display_name or name,
        description=tool.description,
        actions=await _actions(tool, bool(needs)),
        effect=tool.effect,
        default_on=tool.default_on,
        internal=tool.internal,
        user_scoped=tool.user_scoped,
        needs=needs,
    )


async def _actions(tool: type[Tool], needs_more: bool) -> tuple[str, ...]:
    if tool.actions_in_config:
        return ()
    try:
        return tuple(str(action["name"]) for action in await actions_metadata(tool))
    except LoadFailure:
        # One that must be configured may have to be so before it can say what it does.
        if needs_more:
            return ()
        raise


def _needs(name: str, tool: type[Tool]) -> tuple[str, ...]:
    try:
        requirements = tool({}, Scope(user_id=None, owner=None, tool_id="catalogue")).get_config_requirements()
        return tuple(missing_keys(requirements, {}))
    except Exception as error:
        raise LoadFailure(f"tool {name} cannot say what it must be configured with: {error!r}") from error
