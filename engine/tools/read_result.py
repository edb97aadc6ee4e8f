"""``read_result``: the rest of a result that was cut for the model."""

from __future__ import annotations

from typing import Any, ClassVar

from engine.contract import Tool, ToolContext, ToolResult
from engine.preview import boundary

__all__ = ("LONGEST", "ReadResult")

LONGEST = 100_000
"""Characters of one piece."""

_USUAL = 20_000


class ReadResult(Tool):
    """Reads pieces of a recorded result of the same tenant, by the key that the cut result named."""

    name = "read_result"
    display_name = "Read result"
    description = "Read the rest of a tool result that was cut."
    internal = True
    effect = "read"
    idempotent = True
    untrusted = True
    limits: ClassVar[tuple[str, ...]] = (f"{_USUAL:,} characters at once, {LONGEST:,} if asked for",)
    errors: ClassVar[tuple[str, ...]] = (
        "Error: There is no result under the key 'k'.",
        "Error: The result has N characters; offset M is past its end.",
    )

    async def execute_action(self, action_name: str, context: ToolContext, /, **kwargs: Any) -> Any:
        """Return ``{key, offset, total, text, next}``; ``next`` is where to go on, null at the end."""
        if action_name != "read_result":
            return ToolResult(f"Error: Unknown action '{action_name}'. There is: read_result.", status="error")
        key, offset, limit = kwargs["key"], kwargs.get("offset", 0), kwargs.get("limit", _USUAL)
        text = await _recorded_text(context, key)
        if text is None:
            return ToolResult(f"Error: There is no result under the key '{key}'.", status="error")
        if offset > len(text):
            said = f"Error: The result has {len(text)} characters; offset {offset} is past its end."
            return ToolResult(said, status="error")
        end = offset + limit
        # Forwards if one grapheme is longer than the whole piece, else backwards to where one ends.
        if end < len(text) and (place := boundary(text, end)) > offset:
            end = place
        piece = text[offset:end]
        following = offset + len(piece)
        return {
            "key": key,
            "offset": offset,
            "total": len(text),
            "text": piece,
            "next": following if following < len(text) else None,
        }

    def get_actions_metadata(self) -> list[dict[str, Any]]:
        """Return the one action, ``read_result``."""
        whole = {"type": "integer", "minimum": 0}
        return [
            {
                "name": "read_result",
                "description": "Read a piece of an earlier tool result that was cut; its notice names the key.",
                "parameters": {
                    "type": "object",
                    "properties": {
                        "key": {"type": "string", "description": 'The text under "read" in the cut result.'},
                        "offset": {**whole, "description": "First character to read; 0 if absent."},
                        "limit": {
                            "type": "integer",
                            "minimum": 1,
                            "maximum": LONGEST,
                            "description": f"Characters to read; {_USUAL} if absent.",
                        },
                    },
                    "required": ["key"],
                    "additionalProperties": False,
                },
            }
        ]

    def get_config_requirements(self) -> dict[str, Any]:
        """Return nothing: there is nothing to configure."""
        return {}


async def _recorded_text(context: ToolContext, key: str) -> str | None:
    """Return a result's whole text (a string itself, anything else its JSON text), of this tenant only."""
    from sqlalchemy import select

    from events.codec import Codec, encode_json
    from events.schema import events, payloads, streams
    from events.types import Executed

    tenant = context.store.tenant
    stream = select(streams.c.stream).where(streams.c.tenant == tenant, streams.c.key == key).scalar_subquery()
    found = await context.store.read(
        select(events.c.type, events.c.schema_version, events.c.data, events.c.position).where(
            events.c.stream == stream, events.c.type == "executed"
        )
    )
    event = Codec().decode(*found[0]) if found else None
    if not isinstance(event, Executed):
        return None
    if event.result_digest is not None:
        content = select(payloads.c.content).where(
            payloads.c.tenant == tenant, payloads.c.digest == event.result_digest
        )
        return str((await context.store.read(content))[0][0])
    return event.result if isinstance(event.result, str) else encode_json(event.result).decode()
