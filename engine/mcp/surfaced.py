"""A server's resources and prompts as actions, beside its tools: to list them, and to read one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

import mcp_types as types
import msgspec

from engine.contract import ToolResult
from engine.mcp.content import Keep, content_of, resource_content
from engine.mcp.errors import McpError

__all__ = ("SURFACED", "Surfaced", "surfaced_metadata")

_CURSOR: Final = {"cursor": {"type": "string", "description": "The next_cursor of the page before; none: the first."}}
_LISTED: Final = (
    ("uri", "uri"),
    ("name", "name"),
    ("title", "title"),
    ("description", "description"),
    ("mimeType", "mime_type"),
    ("size", "bytes"),
    ("arguments", "arguments"),
)


class Surfaced(msgspec.Struct, frozen=True):
    """One such action.

    :ivar capability: what a server must have for it
    :ivar request: makes the request of the call's arguments
    :ivar result_of: makes the result of the server's
    """

    name: str
    capability: str
    description: str
    properties: dict[str, Any]
    required: tuple[str, ...]
    request: Callable[[dict[str, Any]], types.Request[Any, Any]]
    result_of: Callable[[Mapping[str, Any], Keep], dict[str, Any]]

    def metadata(self, timeout: float) -> dict[str, Any]:
        """Return it as an entry of ``get_actions_metadata``."""
        parameters = {
            "type": "object",
            "properties": self.properties,
            "required": list(self.required),
            "additionalProperties": False,
        }
        return {
            "name": self.name,
            "description": self.description,
            "parameters": parameters,
            "effect": "read",
            "idempotent": True,
            "require_approval": False,
            "timeout": timeout,
        }

    def asked(self, arguments: dict[str, Any]) -> types.Request[Any, Any]:
        """Return the request. :raises McpError: if the arguments are not as the protocol has them"""
        try:
            return self.request(arguments)
        except (ValueError, KeyError):
            raise McpError(f"the arguments of {self.name} are not in a form that the MCP server takes") from None

    def result(self, result: Mapping[str, Any], keep: Keep) -> ToolResult:
        """Return the server's result as the journal and the model get it."""
        return ToolResult(self.result_of(result, keep))


def _page(arguments: dict[str, Any]) -> types.PaginatedRequestParams:
    return types.PaginatedRequestParams(cursor=arguments.get("cursor"))


def _listed(result: Mapping[str, Any], key: str) -> dict[str, Any]:
    entries = [each for each in result.get(key) or () if isinstance(each, Mapping)]
    listed = [{ours: each[theirs] for theirs, ours in _LISTED if each.get(theirs) is not None} for each in entries]
    cursor = result.get("nextCursor")
    return {key: listed, **({"next_cursor": cursor} if isinstance(cursor, str) else {})}


def _contents(result: Mapping[str, Any], keep: Keep) -> dict[str, Any]:
    parts = result.get("contents")
    return {"content": [resource_content(each, keep) for each in parts or () if isinstance(each, Mapping)]}


def _messages(result: Mapping[str, Any], keep: Keep) -> dict[str, Any]:
    messages = [each for each in result.get("messages") or () if isinstance(each, Mapping)]
    return {
        "messages": [{"role": each.get("role"), "content": content_of(each.get("content"), keep)} for each in messages]
    }


SURFACED: Final = (
    Surfaced(
        "mcp_list_resources",
        "resources",
        "List what the server has to read, a page at a time.",
        _CURSOR,
        (),
        lambda arguments: types.ListResourcesRequest(params=_page(arguments)),
        lambda result, _: _listed(result, "resources"),
    ),
    Surfaced(
        "mcp_read_resource",
        "resources",
        "Read one of the server's resources.",
        {"uri": {"type": "string", "description": "As the list has it."}},
        ("uri",),
        lambda arguments: types.ReadResourceRequest(params=types.ReadResourceRequestParams(uri=arguments["uri"])),
        _contents,
    ),
    Surfaced(
        "mcp_list_prompts",
        "prompts",
        "List the server's prompts with their arguments, a page at a time.",
        _CURSOR,
        (),
        lambda arguments: types.ListPromptsRequest(params=_page(arguments)),
        lambda result, _: _listed(result, "prompts"),
    ),
    Surfaced(
        "mcp_get_prompt",
        "prompts",
        "Get one of the server's prompts, filled in.",
        {"name": {"type": "string"}, "arguments": {"type": "object", "additionalProperties": {"type": "string"}}},
        ("name",),
        lambda arguments: types.GetPromptRequest(
            params=types.GetPromptRequestParams(name=arguments["name"], arguments=arguments.get("arguments"))
        ),
        _messages,
    ),
)
"""All of them. A server's own tool of such a name goes before."""


def surfaced_metadata(capabilities: Collection[str], taken: Collection[str], timeout: float) -> list[dict[str, Any]]:
    """Return the metadata of those that a server has something for."""
    return [each.metadata(timeout) for each in SURFACED if each.capability in capabilities and each.name not in taken]
