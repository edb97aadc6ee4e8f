"""``mcp_tool``: the tools of a remote MCP server as actions."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, ClassVar

from engine.contract import Scope, Tool, ToolContext

__all__ = ("MCPTool",)


class MCPTool(Tool):
    """Speaks streamable HTTP or SSE with the server its row names; never starts a program.

    What its row keeps of the server's tools is what the model sees and a person approves. Where the server says
    something else of a tool by now, each call of it asks again, until the row's owner has looked at it.
    """

    name = "mcp_tool"
    display_name = "MCP server"
    description = "Use the tools of a remote MCP server."
    timeout = 300.0
    untrusted = True
    limits: ClassVar[tuple[str, ...]] = (
        "30 s per call unless the row says otherwise, 300 s at most",
        "streamable HTTP and SSE; never a program of this machine",
        "files of results: the latest 64 MiB of an engine are kept",
    )
    errors: ClassVar[tuple[str, ...]] = (
        "what the server's tool says went wrong",
        "that the server cannot be reached, wants other credentials, or speaks no MCP",
    )

    def __init__(self, config: dict[str, Any], scope: Scope) -> None:
        super().__init__(config, scope)
        self._work: Any = None

    @property
    def _server(self) -> Any:
        """The tool's side of its server; made late, for what speaks MCP takes half a second to load."""
        if self._work is None:
            from engine.mcp.serving import ServerTools

            self._work = ServerTools(self.config, self.scope)
        return self._work

    async def execute_action(self, action_name: str, context: ToolContext, /, **kwargs: Any) -> Any:
        """Call the server's tool with exactly these arguments; what it refuses or cannot do is an error result.

        Cancelled or out of time, the server is told, and the connection given up.

        :raises TimeoutError: if it takes longer than the row allows; it may have had its effect
        """
        left = (context.deadline - datetime.now(UTC)).total_seconds()
        return await self._server.call(action_name, kwargs, context, left)

    async def get_actions_metadata(self) -> list[dict[str, Any]]:
        """Ask the server for its tools, and return them whole.

        :raises McpError: if it does not tell
        """
        if not self.config.get("server_url"):
            # Without the imports of what speaks MCP: a catalogue asks every tool there is.
            from engine.mcp.errors import InvalidServer

            raise InvalidServer("server_url is missing; give the server's URL, with https://")
        entries: list[dict[str, Any]] = await self._server.actions()
        return entries

    async def preview_decision(
        self,
        action_name: str,
        arguments: dict[str, Any],  # noqa: ARG002
    ) -> tuple[bool, bool]:
        """Ask again where the server's tool is another than the row says.

        :raises AskAgain: if it is
        """
        # What it cannot be asked for now, or ever, is found out and said by the call itself.
        from engine.mcp.errors import McpError

        with suppress(McpError):
            await self._server.compare(action_name)
        return False, False

    def config_problems(self) -> list[str]:
        """Return why the row cannot be used so: a URL that is none or carries credentials, a program to start."""
        from engine.mcp.server import Server

        return Server.problems_of(self.config)

    def get_config_requirements(self) -> dict[str, Any]:
        """Return what a row needs: the server's URL, and how to authenticate."""
        return {
            "server_url": {"type": "string", "required": True, "label": "Server URL"},
            "auth_type": {
                "type": "string",
                "required": True,
                "enum": ["none", "bearer", "oauth", "api_key", "basic"],
                "default": "none",
            },
            "api_key": _secret("api_key"),
            "api_key_header": {"type": "string", "default": "X-API-Key", "depends_on": {"auth_type": "api_key"}},
            "bearer_token": _secret("bearer"),
            "username": _secret("basic"),
            "password": _secret("basic"),
            "oauth_scopes": {
                "type": "string",
                "description": "Scopes to ask for, between commas or spaces.",
                "depends_on": {"auth_type": "oauth"},
            },
            **_options(),
        }


def _options() -> dict[str, Any]:
    return {
        "timeout": {
            "type": "number",
            "minimum": 1,
            "maximum": 300,
            "default": 30,
            "description": "Seconds for a call.",
        },
        "transport_type": {"type": "string", "enum": ["auto", "http", "sse"], "default": "auto"},
        "headers": {"type": "object", "description": "Headers sent with every request."},
        "approval": {
            "type": "string",
            "enum": ["annotations", "always", "never"],
            "default": "annotations",
            "description": "Which actions need a person: all that are not said to be read-only, all, or none.",
        },
        "resources": {
            "type": "boolean",
            "default": False,
            "description": "Add actions that list and read the server's resources and prompts.",
        },
    }


def _secret(auth_type: str) -> dict[str, Any]:
    return {"type": "string", "secret": True, "required": True, "depends_on": {"auth_type": auth_type}}
