"""``CallAssembler``: a provider's stream, in whatever pieces it comes, becomes calls."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import msgspec
from msgspec.structs import replace

from engine.call import ToolCall
from engine.families import Family, family_of
from engine.stream.anthropic import AnthropicStream
from engine.stream.chat import ChatStream
from engine.stream.fragment import Fragment
from engine.stream.google import GoogleStream
from engine.stream.responses import ResponsesStream
from engine.stream.sse import SseDecoder

__all__ = ("CallAssembler", "parse_stream")

_END = "[DONE]"


class _Stream(Protocol):
    def take(self, event: dict[str, Any], /) -> None: ...
    def fragments(self) -> list[Fragment]: ...
    def calls(self) -> list[ToolCall]: ...


class CallAssembler:
    """Assembles the calls of one streamed response; a family nobody knows follows openai's rules.

    ``openai`` takes Chat Completions and Responses and tells them apart by their events. Calls that the provider runs
    itself are not ours and are left out. Never raises on account of what a provider sends.
    """

    def __init__(self, family: str = "openai") -> None:
        self._family: Family = family_of(family)
        self._sse = SseDecoder()
        self._stream: _Stream | None = None
        self._whole: frozenset[int] | None = None

    def feed(self, chunk: dict[str, Any] | str | bytes) -> None:
        """Take one event (a dict), or a piece of a server-sent body, cut anywhere."""
        if isinstance(chunk, dict):
            self._take(chunk)
            return
        for data in self._sse.feed(chunk):
            self._read(data)

    def calls(self) -> list[ToolCall]:
        """Return the calls so far, in the order in which the model began them; ``cut_off`` until their end was seen."""
        calls = [] if self._stream is None else self._stream.calls()
        if self._whole is None:
            return calls
        return [call if place in self._whole else replace(call, cut_off=True) for place, call in enumerate(calls)]

    def finish(self, *, complete: bool = False) -> list[ToolCall]:
        """Return the calls, now that nothing more comes; what never ended is ``cut_off``, and refused by ``execute``.

        :param complete: the response is known to have ended well, although its stream may not say so
        """
        for data in self._sse.flush():
            self._read(data)
        if complete:
            self._end()
        return self.calls()

    def _read(self, data: str) -> None:
        if data.strip() == _END:
            self._end()
            return
        try:
            event = msgspec.json.decode(data)
        except (ValueError, RecursionError):
            # What it held is lost, and it may have been a piece of any call that has not ended.
            if self._whole is None:
                self._whole = frozenset(place for place, call in enumerate(self.calls()) if not call.cut_off)
            return
        if isinstance(event, dict):
            self._take(event)

    def _take(self, event: dict[str, Any]) -> None:
        if self._stream is None:
            self._stream = _stream_of(self._family, event)
        if self._stream is not None:
            self._stream.take(event)

    def _end(self) -> None:
        for fragment in self._stream.fragments() if self._stream is not None else ():
            fragment.ended = True


def _stream_of(family: Family, event: dict[str, Any]) -> _Stream | None:
    match family:
        case "anthropic":
            return AnthropicStream()
        case "google":
            return GoogleStream()
    kind = event.get("type")
    if isinstance(kind, str) and kind.startswith("response."):
        return ResponsesStream()
    return ChatStream() if "choices" in event else None


def parse_stream(
    chunks: Iterable[dict[str, Any] | str | bytes], family: str, *, complete: bool = False
) -> list[ToolCall]:
    """Return the calls of one recorded stream: its events, or its server-sent body in pieces (``CallAssembler``)."""
    assembler = CallAssembler(family)
    for chunk in chunks:
        assembler.feed(chunk)
    return assembler.finish(complete=complete)
