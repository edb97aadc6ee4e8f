"""From a model's call to (tool, action, arguments): ``ToolActionParser`` (DESIGN 6, Parsing)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import msgspec

from engine.call import ToolCall
from engine.families import Family, family_of
from engine.malformed import diagnose
from engine.refusals import not_an_object, quoted

__all__ = ("ParsedCall", "ToolActionParser")

_log = logging.getLogger("calljournal.parsing")
_decode = msgspec.json.Decoder().decode


class ParsedCall(msgspec.Struct, frozen=True):
    """What a call means.

    :ivar tool_id: None where the name leads nowhere (then ``action_name`` is None too)
    :ivar llm_name: the name as the model said it; empty if it said none
    :ivar arguments: the object; or the decoded value that is none; ``{}`` where nothing could be decoded (then see
        ``problem``)
    :ivar problem: why the call must not run although its name may resolve; text for the model
    :ivar raw: the arguments as sent, where ``arguments`` does not tell
    :ivar warnings: why the call may be invented; they have been logged
    """

    tool_id: str | None
    action_name: str | None
    llm_name: str
    arguments: Any
    problem: str | None = None
    raw: str | None = None
    warnings: tuple[str, ...] = ()

    @property
    def resolved(self) -> bool:
        """Whether the name led to a tool's action."""
        return self.tool_id is not None


class ToolActionParser:
    """Parses the calls of one provider family; a family nobody knows follows openai's rules. Holds no state."""

    __slots__ = ("family",)

    def __init__(self, family: str = "openai") -> None:
        self.family: Family = family_of(family)

    def parse(self, call: ToolCall, names: Mapping[str, tuple[str, str]]) -> ParsedCall:
        """Resolve the name and decode the arguments; never raises, changes nothing it is given.

        Advertised names go first. Only then, as old conversations need it, ``<action>_<tool id>`` is split at its
        last ``_``, with a warning where that has fewer than two parts or an id that is not numeric. Names are
        compared as they are: no case folding, no trimming, no nearest match. Empty, blank, null and absent arguments
        are ``{}``. Nothing else is repaired or coerced.
        """
        name = call.name or ""
        route = names.get(name)
        arguments = sent = call.arguments
        if route is None:
            return self._parse(name, None, sent)
        # The way of nearly every call.
        if type(sent) is str:
            try:
                arguments = _decode(sent)
            except (ValueError, RecursionError):
                return self._parse(name, route, sent)
        if type(arguments) is dict:
            return ParsedCall(route[0], route[1], name, arguments)
        return self._parse(name, route, sent)

    def _parse(self, name: str, route: tuple[str, str] | None, sent: Any) -> ParsedCall:
        warnings: tuple[str, ...] = ()
        if route is None:
            route, warnings = _split(name)
            for warning in warnings:
                _log.warning(warning)
        if route is None:
            return ParsedCall(None, None, name, None, raw=_as_text(sent), warnings=warnings)
        arguments, problem, raw = self._arguments(name, sent)
        return ParsedCall(route[0], route[1], name, arguments, problem, raw, warnings)

    def _arguments(self, name: str, sent: Any) -> tuple[Any, str | None, str | None]:
        value = sent
        if isinstance(sent, (str, bytes, bytearray)):
            text = bytes(sent) if isinstance(sent, bytearray) else sent
            if not text or text.isspace():
                return {}, None, None
            try:
                value = _decode(text)
            except (ValueError, RecursionError):
                found = diagnose(text)
                if found.problem is not None:
                    return {}, _not_json(name, found.problem), _as_text(sent)
                value = found.value
        if value is None:
            return {}, None, None
        if not isinstance(value, dict):
            kept = {} if self.family == "google" else value
            return kept, not_an_object(name, value), _as_text(sent)
        return value, None, None


def _split(name: str) -> tuple[tuple[str, str] | None, tuple[str, ...]]:
    action, separator, tool_id = name.rpartition("_")
    if not separator or not action or not tool_id:
        return None, (
            f"call of {quoted(name)}: no such name, and it is no <action>_<tool id> either; the call may be invented",
        )
    if not (tool_id.isascii() and tool_id.isdigit()):
        warning = f"call of {quoted(name)}: its tool id {quoted(tool_id)} is not numeric; the call may be invented"
        return (tool_id, action), (warning,)
    return (tool_id, action), ()


def _not_json(name: str, problem: str) -> str:
    return f"The arguments of {quoted(name)} are not valid JSON: {problem}. Send one complete JSON object."


def _as_text(sent: Any) -> str | None:
    if sent is None or isinstance(sent, str):
        return sent
    if isinstance(sent, (bytes, bytearray)):
        return sent.decode(errors="replace")
    try:
        return msgspec.json.encode(sent).decode()
    except (TypeError, ValueError, OverflowError, RecursionError):
        return None
