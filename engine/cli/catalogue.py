"""The tools that the command line knows, and the rows it runs them with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec
from msgspec.structs import replace

from engine.availability import Availability
from engine.config_check import missing_keys
from engine.contract import Scope, Tool
from engine.defaults import internal_row
from engine.discovery import Problem, ToolManager
from engine.loading import LoadFailure, actions_metadata
from engine.net.policy import NetPolicy
from engine.rows import ToolRow
from engine.services import Services
from engine.tool_policy import EVERYTHING, ToolPolicy

__all__ = ("Catalogue", "CatalogueEntry", "read_catalogue")

_INTERNAL = ("think",)


class CatalogueEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One tool as the catalogue lists it.

    :ivar needs: keys of its configuration that a row must give
    :ivar default_on: it is in every turn without an agent
    :ivar standing: what the deployment says of it; None: nothing
    :ivar unavailable: why it cannot work at present; None: it can, or was not asked
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
    standing: Literal["on", "off", "ask", "denied"] | None = None
    unavailable: str | None = None


class Catalogue(msgspec.Struct, frozen=True, kw_only=True):
    """Every tool found, and a row for each that needs no configuration.

    :ivar problems: what could not be taken, and why
    """

    entries: tuple[CatalogueEntry, ...]
    rows: tuple[ToolRow, ...]
    problems: tuple[Problem, ...]


async def read_catalogue(
    folders: Sequence[Path], policy: ToolPolicy = EVERYTHING, *, asking: NetPolicy | None = None
) -> Catalogue:
    """Look at every tool there is: the built-in ones, the folders', the installed packages'.

    :param policy: what the deployment says of them
    :param asking: they are asked whether they can work, and where their requests may go; None: they are not asked
    """
    services = Services(asking)
    try:
        return await _read(folders, policy, None if asking is None else services.shared(Availability))
    finally:
        await services.aclose()


async def _read(folders: Sequence[Path], policy: ToolPolicy, availability: Availability | None) -> Catalogue:
    manager = ToolManager(folders)
    classes = manager.load_tools() | {name: manager.load_tool(name) for name in _INTERNAL}
    entries: list[CatalogueEntry] = []
    problems: list[Problem] = []
    for name, tool in classes.items():
        try:
            why = None if availability is None else await availability.why_not(tool)
            entries.append(replace(await _entry(name, tool, policy), unavailable=why))
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


async def _entry(name: str, tool: type[Tool], policy: ToolPolicy) -> CatalogueEntry:
    needs = _needs(name, tool)
    standing = policy.standing.get(name) if policy.permits(name) else "denied"
    return CatalogueEntry(
        name=name,
        display_name=tool.display_name or name,
        description=tool.description,
        actions=await _actions(tool, bool(needs)),
        effect=tool.effect,
        default_on=standing == "on" or (tool.default_on and standing not in ("off", "denied")),
        internal=tool.internal,
        user_scoped=tool.user_scoped,
        needs=needs,
        standing=standing,
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
