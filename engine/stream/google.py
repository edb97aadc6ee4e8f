"""Calls out of streamed Google content: each part brings a whole call."""

from __future__ import annotations

from typing import Any

import msgspec

from engine.call import ToolCall, parse_calls
from engine.stream.fragment import Fragment

__all__ = ("GoogleStream",)

_PARTIAL = ("partialArgs", "willContinue", "partial_args", "will_continue")


class GoogleStream:
    """Takes chunks of generated content. Arguments that come in parts are not put together: such a call is refused."""

    def __init__(self) -> None:
        self._parts: dict[object, list[dict[str, Any]]] = {}

    def take(self, chunk: dict[str, Any]) -> None:
        """Take one chunk."""
        candidates = chunk.get("candidates")
        for candidate in candidates if isinstance(candidates, list) else ():
            content = candidate.get("content") if isinstance(candidate, dict) else None
            parts = content.get("parts") if isinstance(content, dict) else None
            if isinstance(parts, list):
                index = candidate.get("index")
                known = self._parts.setdefault(index if isinstance(index, int) else 0, [])
                known.extend(part for part in parts if isinstance(part, dict) and _has_call(part))

    def fragments(self) -> list[Fragment]:
        """Return nothing: there are no calls without their end."""
        return []

    def calls(self) -> list[ToolCall]:
        """Return the calls so far, with the ids that the whole response would give them."""
        candidates = [{"content": {"parts": parts}} for parts in self._parts.values()]
        parts = next(iter(filter(None, self._parts.values())), [])
        return [
            msgspec.structs.replace(call, cut_off=True) if _is_partial(part) else call
            for call, part in zip(parse_calls({"candidates": candidates}, "google"), parts, strict=True)
        ]


def _content(part: dict[str, Any]) -> Any:
    return part.get("functionCall", part.get("function_call"))


def _has_call(part: dict[str, Any]) -> bool:
    return bool(_content(part))


def _is_partial(part: dict[str, Any]) -> bool:
    return any(_content(part).get(key) for key in _PARTIAL)
