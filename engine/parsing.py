"""From a model's call to (tool, action, arguments): ``ToolActionParser`` (DESIGN 6, Parsing)."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from engine.actions import Action
from engine.call import ToolCall
from engine.families import Family, family_of
from engine.malformed import Diagnosis, diagnose
from engine.refusals import not_an_object, quoted
from engine.repair import repaired
from engine.strict_schema import sparse_arguments

__all__ = ("ParsedCall", "ToolActionParser", "as_meant", "log_warnings")

_log = logging.getLogger("calljournal.parsing")
_decode = msgspec.json.Decoder().decode


class ParsedCall(msgspec.Struct, frozen=True, gc=False):
    """What a call means.

    :ivar tool_id: None where the name leads nowhere (then ``action_name`` is None too)
    :ivar llm_name: the name as the model said it; empty if it said none
    :ivar arguments: the object; or the decoded value that is none; ``{}`` where nothing could be decoded (then see
        ``problem``)
    :ivar problem: why the call must not run although its name may resolve; text for the model
    :ivar raw: the arguments as sent, where ``arguments`` does not tell
    :ivar warnings: why the call may be invented; they have been logged, unless the parser is quiet
    :ivar note: what was mended in the arguments, if anything was; ``raw`` has them as they were
    """

    tool_id: str | None
    action_name: str | None
    llm_name: str
    arguments: Any
    problem: str | None = None
    raw: str | None = None
    warnings: tuple[str, ...] = ()
    note: str | None = None

    @property
    def resolved(self) -> bool:
        """Whether the name led to a tool's action."""
        return self.tool_id is not None


class ToolActionParser:
    """Parses the calls of one provider family; a family nobody knows follows openai's rules. Holds no state."""

    __slots__ = ("_quiet", "family")

    def __init__(self, family: str = "openai", *, quiet: bool = False) -> None:
        """Take the family.

        :param quiet: warnings are left to the caller to log, see :func:`log_warnings`
        """
        self.family: Family = family_of(family)
        self._quiet = quiet

    def parse(self, call: ToolCall, names: Mapping[str, tuple[str, str]]) -> ParsedCall:
        """Resolve the name and decode the arguments; never raises, changes nothing it is given.

        Advertised names go first. Only then, as old conversations need it, ``<action>_<tool id>`` is split at its
        last ``_``, with a warning where that has fewer than two parts or an id that is not numeric. Names are
        compared as they are: no case folding, no trimming, no nearest match. Empty, blank, null and absent arguments
        are ``{}``; those of a call that was cut off are a problem, whatever arrived of them. Almost-JSON with one
        possible reading is mended (:func:`engine.repair.repaired`), halves of surrogate pairs are replaced, and of a
        key that comes twice the last counts. Nothing else is repaired or coerced.
        """
        name: Any = call.name
        sent = call.arguments
        # The way of nearly every call: what is otherwise shows in that it fails.
        try:
            tool_id, action = names[name]
            arguments = (_decode(sent) if sent else {}) if type(sent) is str else sent
        except (LookupError, TypeError, ValueError, RecursionError):
            name = name if type(name) is str else ""
        else:
            if type(arguments) is dict and not call.cut_off:
                return ParsedCall(tool_id, action, name, arguments)
        return self._parse(name, names.get(name), sent, call.cut_off)

    def _parse(self, name: str, route: tuple[str, str] | None, sent: Any, cut_off: bool) -> ParsedCall:
        warnings: tuple[str, ...] = ()
        if route is None:
            route, warnings = _split(name)
            if not self._quiet:
                log_warnings(warnings)
        if route is None:
            return ParsedCall(None, None, name, None, raw=_as_text(sent), warnings=warnings)
        if cut_off:
            return ParsedCall(*route, name, {}, _broke_off(name), _as_text(sent) or "", warnings)
        read = self._arguments(name, sent)
        raw = _as_text(sent) if read.problem is not None or read.note is not None else None
        return ParsedCall(*route, name, read.value, read.problem, raw, warnings, read.note)

    def _arguments(self, name: str, sent: Any) -> Diagnosis:
        read = Diagnosis(None, sent)
        if isinstance(sent, (str, bytes, bytearray)):
            text = sent if isinstance(sent, str) else bytes(sent)
            if not text or text.isspace():
                return Diagnosis(None, {})
            read = diagnose(text)
            if (read.problem is not None or isinstance(read.value, str)) and (mended := _mended(text)) is not None:
                return mended
            if read.problem is not None:
                return Diagnosis(_not_json(name, read.problem), {})
        if read.value is None:
            return Diagnosis(None, {})
        if not isinstance(read.value, dict):
            return Diagnosis(not_an_object(name, read.value), {} if self.family == "google" else read.value)
        return read


def log_warnings(warnings: Sequence[str]) -> None:
    """Log why a call may be invented."""
    for warning in warnings:
        _log.warning(warning)


def as_meant(parsed: ParsedCall, action: Action, sent: Any) -> ParsedCall:
    """Return a call of a strict function without each null that means: left out (``engine.strict_schema``).

    :param sent: the arguments as the model sent them, to keep beside what they are taken for
    """
    if parsed.problem is not None or not isinstance(parsed.arguments, dict):
        return parsed
    meant = sparse_arguments(parsed.arguments, action.shown)
    if meant is parsed.arguments:
        return parsed
    note = "; ".join(filter(None, [parsed.note, "null, of what may be left out, was taken for that"]))
    return replace(parsed, arguments=meant, raw=parsed.raw or _as_text(sent), note=note)


def _mended(text: str | bytes) -> Diagnosis | None:
    try:
        repair = repaired(text if isinstance(text, str) else text.decode())
    except UnicodeDecodeError:
        return None
    return None if repair is None else Diagnosis(None, repair.value, repair.note)


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


def _broke_off(name: str) -> str:
    return f"The arguments of {quoted(name)} broke off before their end. Send the whole call again."


def _as_text(sent: Any) -> str | None:
    if sent is None or isinstance(sent, str):
        return sent
    if isinstance(sent, (bytes, bytearray)):
        return sent.decode(errors="replace")
    try:
        return msgspec.json.encode(sent).decode()
    except (TypeError, ValueError, OverflowError, RecursionError):
        return None
