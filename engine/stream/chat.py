"""Calls out of streamed Chat Completions, as OpenAI and those that follow it send them (STREAM-03)."""

from __future__ import annotations

from typing import Any

from engine.call import ToolCall, broken_off
from engine.stream.fragment import Fragment

__all__ = ("ChatStream",)


class _Choice:
    """One alternative of the answer."""

    def __init__(self) -> None:
        self.fragments: list[Fragment] = []
        self.reason: object = None
        self._current: dict[object, Fragment] = {}

    def take(self, item: dict[str, Any]) -> None:
        custom = item.get("custom")
        function = custom if isinstance(custom, dict) else item.get("function")
        function = function if isinstance(function, dict) else {}
        name = function.get("name")
        name = name if isinstance(name, str) else ""
        fragment = self._fragment(item.get("index"), item.get("id"), name)
        fragment.add_name(name)
        fragment.add_arguments(function.get("input" if isinstance(custom, dict) else "arguments"))
        if item.get("extra_content") is not None:
            fragment.extra = {"extra_content": item["extra_content"]}

    def _fragment(self, index: object, call_id: object, name: str) -> Fragment:
        """Return the call that a piece belongs to: a new id at the same index is a new call, no index its own place."""
        call_id = call_id if isinstance(call_id, str) and call_id else None
        place: object = index if isinstance(index, int) else ("id", call_id)
        current = self._current.get(place)
        if isinstance(index, int):
            if current is not None and not (call_id and current.id and call_id != current.id):
                current.id = current.id or call_id
                return current
        elif call_id and current is not None:
            return current
        elif not call_id and not name and self.fragments:
            # With no index, no id and no name it can only belong to the one call there is.
            for each in self.fragments if len(self.fragments) > 1 else ():
                each.unclear = True
            return self.fragments[-1]
        fragment = Fragment(call_id)
        self.fragments.append(fragment)
        self._current[place] = fragment
        return fragment


class ChatStream:
    """Takes chunks of Chat Completions."""

    def __init__(self) -> None:
        self._choices: dict[object, _Choice] = {}

    def take(self, chunk: dict[str, Any]) -> None:
        """Take one chunk."""
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict):
                self._take_choice(choice)

    def _take_choice(self, choice: dict[str, Any]) -> None:
        index = choice.get("index")
        state = self._choices.setdefault(index if isinstance(index, int) else 0, _Choice())
        delta = choice.get("delta")
        delta = delta if isinstance(delta, dict) else {}
        items = delta.get("tool_calls")
        for item in items if isinstance(items, list) else ():
            if isinstance(item, dict):
                state.take(item)
        # The form before tool_calls: one call without an id.
        if isinstance(delta.get("function_call"), dict):
            state.take({"index": 0, "function": delta["function_call"]})
        if choice.get("finish_reason"):
            state.reason = choice["finish_reason"]
            for fragment in state.fragments:
                fragment.ended = True

    def fragments(self) -> list[Fragment]:
        """Return the calls so far: those of the first alternative that has any."""
        return next((state.fragments for state in self._choices.values() if state.fragments), [])

    def calls(self) -> list[ToolCall]:
        """Return the same as calls."""
        for state in self._choices.values():
            if state.fragments:
                return broken_off([fragment.call() for fragment in state.fragments], state.reason)
        return []
