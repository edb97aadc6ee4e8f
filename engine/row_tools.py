"""The tools of rows that are about to be stored: what each wants to be configured with, and what it can do."""

from __future__ import annotations

from typing import Any, Final

import anyio
from msgspec.structs import replace

from engine.action_check import check_action_names, check_actions
from engine.actions import Action, resolve_actions
from engine.bare_secrets import check_values
from engine.config_check import check_config, without_secret_values
from engine.contract import Tool
from engine.credentials import Credentials
from engine.defaults import INTERNAL_ID, default_id, default_rows, selectable_rows
from engine.discovery import ToolManager
from engine.loading import actions_metadata, constructed, reason_of, without_secrets
from engine.opened_rows import CREDENTIALS, opened, opened_credentials
from engine.rows import ToolRow
from engine.services import Services
from engine.tool_policy import EVERYTHING, ToolPolicy
from events.errors import NotFound, Refused

__all__ = ("RowTools",)

_METADATA_TIME: Final = 30.0


class RowTools:
    """Asks tools about rows, through instances that are made for that and thrown away.

    :ivar manager: finds and loads tools
    :ivar services: what the tools share; its vault opens and seals the rows' credentials
    :ivar policy: what the deployment says of tools
    """

    def __init__(self, manager: ToolManager, services: Services, policy: ToolPolicy = EVERYTHING) -> None:
        self.manager = manager
        self.services = services
        self.policy = policy

    def __repr__(self) -> str:
        return f"<RowTools with {self.services.vault!r}>"

    def defaults(self) -> dict[str, ToolRow]:
        """Return the rows of the default tools by name. :raises Refused: if one of them cannot be one"""
        return {row.name: row for row in default_rows(self.manager, self.policy)}

    def built_ins(self) -> dict[str, ToolRow]:
        """Return the rows of the tools that can be used without being stored, by name, as far as they are permitted."""
        rows = selectable_rows(self.manager)
        return {name: row for name, row in rows.items() if self.policy.permits(name)}

    def require_permitted(self, row: ToolRow) -> None:
        """Refuse a row whose tool no turn may have. :raises Refused: if the deployment does not permit it"""
        if not self.policy.permits(row.name):
            raise Refused(f"tool {row.name!r} is not permitted here: the deployment's tool policy leaves it out")

    def built_in(self, row_id: str) -> str | None:
        """Return the name of the tool whose row nobody stores and whose id this is; None: there is none."""
        if row_id == INTERNAL_ID:
            return INTERNAL_ID
        return next((name for name in self.manager.load_tools() if default_id(name) == row_id), None)

    def tool_of(self, row: ToolRow) -> type[Tool]:
        """Return a row's tool.

        :raises NotFound: if there is none
        :raises Refused: if it is internal
        """
        tool = self.manager.load_tool(row.name)
        if tool.internal:
            raise Refused(f"tool {row.name!r} is the engine's own and takes no rows")
        return tool

    def untrusted(self, name: str) -> bool:
        """Tell whether others write what a tool returns; of one that is not there, nobody knows that they do not."""
        try:
            return self.manager.load_tool(name).untrusted
        except NotFound:
            return True

    def requirements(self, row: ToolRow) -> dict[str, Any]:
        """Return what a row's tool wants to be configured with; it is asked with what it is to be configured with.

        :raises NotFound: if there is no such tool
        :raises Refused: if it is internal, or cannot say
        """
        tool = self.tool_of(row)
        try:
            said = constructed(tool, row, row.user_id, self.services).get_config_requirements()
        except Exception as error:
            # Whatever a stranger's tool raises there, this row is not stored; the reason shows none of its values.
            reason = reason_of(error, row.config)
            raise Refused(f"tool {row.name!r} cannot say what it must be configured with: {reason}") from error
        if not isinstance(said, dict):
            raise Refused(f"get_config_requirements of tool {row.name!r} must return an object")
        return said

    def checked(self, row: ToolRow, credentials: Credentials) -> ToolRow:
        """Return a row as it may be stored: its configuration found right, and every secret out of it and sealed.

        :param row: what it has sealed already stays only if the credentials are the same
        :param credentials: all its secrets, besides those within its configuration
        :raises Refused: if the tool cannot be used so; the text says everything that is wrong
        :raises CredentialsError: if the secrets cannot be sealed
        """
        tool = self.tool_of(row)
        said = self.requirements(row)
        config, secrets = without_secret_values(said, row.config, credentials)
        check_config(row.name, said, config, secrets, known=("actions",) if tool.actions_in_config else ())
        row = replace(row, config=config)
        if tool.actions_in_config:
            check_action_names(row.name, [action.name for action in resolve_actions(row, tool, [])])
        self._ask_tool(tool, replace(row, config={**config, **secrets, CREDENTIALS: secrets}))
        if row.credentials is not None and self.secrets(row) == secrets:
            return row
        return replace(row, credentials=self.services.vault.seal(secrets, owner=row.user_id, row_id=row.id))

    def secrets(self, row: ToolRow) -> Credentials:
        """Return a row's secrets. :raises CredentialsError: if they cannot be opened"""
        return opened_credentials(row, self.services.vault, row.user_id)

    async def check_actions(self, row: ToolRow, *, compared: bool = True) -> None:
        """Refuse what a row says of actions that its tool does not have, or not so, and secrets within.

        :param compared: with the row's secrets too; whoever may not see them must not find out by guesses
        :raises Refused: if anything is wrong, or the tool cannot be asked
        :raises CredentialsError: if its secrets cannot be opened
        """
        if row.actions:
            check_actions(row.name, await self.actions(row), row.actions)
            if compared:
                check_values(row, self.secrets)

    async def actions(self, row: ToolRow) -> tuple[Action, ...]:
        """Return the actions of a row as its tool has them, whatever its owner says of them.

        :raises Refused: if its tool must be asked for them, and does not say
        """
        tool, bare = self.tool_of(row), replace(row, actions=None)
        if tool.actions_in_config:
            return resolve_actions(bare, tool, [])
        known = row.actions_metadata
        return resolve_actions(bare, tool, await self.metadata(row) if known is None else known)

    async def metadata(self, row: ToolRow) -> list[dict[str, Any]]:
        """Return what a row's tool says of its actions when it is asked now.

        :raises Refused: if it cannot be asked, or does not answer in time
        """
        tool = self.tool_of(row)
        instance = constructed(tool, opened(row, self.services.vault, row.user_id), row.user_id, self.services)
        with anyio.move_on_after(_METADATA_TIME):
            return await actions_metadata(instance)
        raise Refused(f"tool {row.name!r} has not said in {_METADATA_TIME:g} s what it can do; look at its server")

    def _ask_tool(self, tool: type[Tool], row: ToolRow) -> None:
        """Ask a tool that has a say in it what is wrong with a configuration, secrets included."""
        if not callable(getattr(tool, "config_problems", None)):
            return
        try:
            instance: Any = constructed(tool, row, row.user_id, self.services)
            problems = instance.config_problems()
        except Exception as error:
            # As above: what cannot be checked is not stored.
            raise Refused(f"tool {row.name!r} cannot take this: {reason_of(error, row.config)}") from error
        if problems:
            said = without_secrets("; ".join(map(str, problems)), row.config)
            raise Refused(f"this configuration of {row.name!r} cannot be used: {said}")
