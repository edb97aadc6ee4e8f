"""Calls out of streamed Anthropic messages (STREAM-02)."""

from __future__ import annotations

from typing import Any

from engine.call import ToolCall, broken_off, parse_calls
from engine.stream.fragment import Fragment

__all__ = ("AnthropicStream",)


class AnthropicStream:
    """Takes events of Messages; pieces belong to the block of their index, whatever comes between."""

    def __init__(self) -> None:
        self._fragments: list[Fragment] = []
        self._blocks: dict[object, Fragment | None] = {}
        self._reason: object = None

    def take(self, payload: dict[str, Any]) -> None:
        """Take one event."""
        index = payload.get("index") if isinstance(payload.get("index"), int) else None
        delta = payload.get("delta")
        delta = delta if isinstance(delta, dict) else {}
        block = self._blocks.get(index)
        match payload.get("type"):
            case "content_block_start":
                self._blocks[index] = self._start(payload.get("content_block"))
            case "content_block_delta" if block is not None and delta.get("type") == "input_json_delta":
                block.add_arguments(delta.get("partial_json"))
            case "content_block_stop" if block is not None:
                block.ended = True
            case "message_delta":
                self._reason = delta.get("stop_reason") or self._reason
            case "message_stop":
                for fragment in self._fragments:
                    fragment.ended = True

    def _start(self, block: Any) -> Fragment | None:
        found = parse_calls({"content": [block]}, "anthropic")
        if not found:
            return None
        fragment = Fragment(found[0].id, found[0].name)
        fragment.set_arguments(found[0].arguments)
        self._fragments.append(fragment)
        return fragment

    def fragments(self) -> list[Fragment]:
        """Return the calls so far."""
        return self._fragments

    def calls(self) -> list[ToolCall]:
        """Return the same as calls."""
        return broken_off([fragment.call() for fragment in self._fragments], self._reason)
