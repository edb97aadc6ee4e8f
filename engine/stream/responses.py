"""Calls out of streamed OpenAI Responses."""

from __future__ import annotations

from typing import Any

from engine.call import ToolCall, parse_calls
from engine.stream.fragment import Fragment

__all__ = ("ResponsesStream",)

_OURS = ("function_call", "custom_tool_call")
_DELTAS = ("response.function_call_arguments.delta", "response.custom_tool_call_input.delta")
_DONE = ("response.function_call_arguments.done", "response.custom_tool_call_input.done")


class ResponsesStream:
    """Takes events of Responses."""

    def __init__(self) -> None:
        self._fragments: dict[object, Fragment] = {}
        self._whole: list[ToolCall] = []

    def take(self, payload: dict[str, Any]) -> None:
        """Take one event."""
        kind = payload.get("type")
        item = payload.get("item")
        if kind in ("response.output_item.added", "response.output_item.done"):
            if isinstance(item, dict) and item.get("type") in _OURS:
                self._item(payload, item, done=kind == "response.output_item.done")
        elif kind in _DELTAS:
            self._fragment(payload).add_arguments(payload.get("delta"))
        elif kind in _DONE:
            whole = payload.get("arguments", payload.get("input"))
            if isinstance(whole, str):
                self._fragment(payload).set_arguments(whole)
        elif kind == "response.completed":
            for fragment in self._fragments.values():
                fragment.ended = True
            response = payload.get("response")
            self._whole = parse_calls(response, "openai.responses") if isinstance(response, dict) else []

    def _fragment(self, payload: dict[str, Any]) -> Fragment:
        index = payload.get("output_index")
        return self._fragments.setdefault(index if isinstance(index, int) else str(payload.get("item_id")), Fragment())

    def _item(self, payload: dict[str, Any], item: dict[str, Any], *, done: bool) -> None:
        # A server that gives places no number names them by the item.
        fragment = self._fragment({"item_id": item.get("id"), **payload})
        (call,) = parse_calls({"output": [item]}, "openai.responses")
        fragment.id, fragment.name, fragment.extra = call.id, call.name or "", call.extra
        if done or call.arguments:
            fragment.set_arguments(call.arguments)
        fragment.ended = fragment.ended or (done and item.get("status") != "incomplete")

    def fragments(self) -> list[Fragment]:
        """Return the calls so far."""
        return list(self._fragments.values())

    def calls(self) -> list[ToolCall]:
        """Return the same as calls; the whole response at the end says it best, if it came."""
        return self._whole or [fragment.call() for fragment in self._fragments.values()]
