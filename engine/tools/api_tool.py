"""``api_tool``: HTTP calls that a row's owner configures, each one an action (docs/api_tool.md)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, ClassVar, Final
from uuid import UUID, uuid5

from engine.contract import Tool, ToolContext

__all__ = ("LONGEST", "ApiTool")

LONGEST: Final = 90.0
"""Seconds for a request with its retries."""

_KEYS: Final = UUID("3f0c9a52-7d0b-5e0e-9a64-2b7a1e8f6c11")
_SHARE: Final = 0.95
"""Of the time a call has, what its request may take: the rest is for its result."""


class ApiTool(Tool):
    """Sends what the called action's configuration and the call's arguments make, and returns what comes back.

    An instance is made for one call: its configuration is the action's, with the values of ``query_params`` and
    ``headers`` in place of their schemas; the body's values are the action's arguments.
    """

    name = "api_tool"
    display_name = "HTTP API"
    description = "Call HTTP APIs: each operation of a configured API is an action."
    actions_in_config = True
    cacheable = False
    timeout = 95.0
    untrusted = True
    limits: ClassVar[tuple[str, ...]] = (
        f"{LONGEST:g} s for a request with its retries, three attempts at most",
        "32 MiB per response unless the network policy says otherwise; a longer one is cut, and says so",
        "http and https; where a request may go is the network policy's to say",
    )
    errors: ClassVar[tuple[str, ...]] = (
        "{status_code: 404, data: ..., message: ...}",
        'Parameter "x" is needed: ...',
        "Unsupported HTTP method: M",
        "Body serialization error: ...",
        'The tool has no credential "x": its owner must add it.',
        "No access token: ...",
        "Rate limit: the action takes 10 calls per 60 s; try again in 6 s. Nothing was sent.",
        "API call failed: ...",
    )

    async def execute_action(self, action_name: str, context: ToolContext, /, **kwargs: Any) -> Any:
        """Send the request and return ``{status_code, data, message}``; an error status is an error result."""
        # Imported here: the HTTP client is a tenth of a second that the catalogue need not cost.
        from engine.api.calling import called, prepared
        from engine.api.response import failure
        from events.errors import Refused

        try:
            call = prepared(self.config, kwargs, self._idempotency_key(context))
        except Refused as error:
            return failure(str(error))
        context.annotate("http.request.method", call.request.method)
        left = (context.deadline - datetime.now(UTC)).total_seconds()
        result = await called(self.scope, action_name, call, min(LONGEST, left * _SHARE))
        if (status := result.data["status_code"]) is not None:
            context.annotate("http.response.status_code", status)
        return result

    def _idempotency_key(self, context: ToolContext) -> str:
        # The journal's key is unique within a user, the API's within an account, which several users may share.
        return str(uuid5(_KEYS, f"{context.user_id!r} {self.scope.tool_id!r} {context.idempotency_key}"))

    @classmethod
    def completed_definition(cls, definition: dict[str, Any]) -> dict[str, Any]:
        """Return an operation's definition with the argument that says how many pages are read, if it has pages."""
        if "pages" not in definition:
            return definition
        from engine.api.pages import with_argument

        return with_argument(definition)

    def get_actions_metadata(self) -> list[dict[str, Any]]:
        """Return nothing: the actions are the row's."""
        return []

    def get_config_requirements(self) -> dict[str, Any]:
        """Return what a row must have, and the secrets that its operations take."""
        from engine.api.row_config import wanted_secrets

        secrets = {name: {"type": "string", "secret": True, "required": False} for name in wanted_secrets(self.config)}
        return {
            "actions": {
                "type": "object",
                "required": True,
                "description": "The operations by name; made by an import (OpenAPI, Postman, curl).",
            },
            "security": {
                "type": "array",
                "required": False,
                "description": "Where the row's credentials go in a request: header, query, cookie, path; OAuth 2.",
            },
            "trusted_origins": {
                "type": "array",
                "required": False,
                "description": "The only origins, as https://api.example, that the credentials go to.",
            },
            **secrets,
        }

    def config_problems(self) -> list[str]:
        """Return what keeps the row's operations from being carried out, or its credentials from being used."""
        from engine.api.row_config import problems_of

        return problems_of(self.config)
