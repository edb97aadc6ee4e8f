"""A provider's response from a file: read, recognised by its shape, and turned into the calls of a turn."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from engine.call import ToolCall, parse_calls, stable_call_id, unique_ids
from engine.refusals import kind_of_json
from events.errors import Refused
from events.keys import require_storable

__all__ = ("FAMILIES", "LARGEST", "Turn", "read_turn")

FAMILIES: Final = ("openai", "openai.chat", "openai.responses", "anthropic", "google")
LARGEST: Final = 64 * 1024 * 1024
"""Bytes of a response; what is larger is no provider's."""

_IDS: Final = ("id", "responseId", "response_id")


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """The calls of one response; the same file gives the same turn, so that running it again repeats nothing."""

    family: str
    message_id: str
    calls: tuple[ToolCall, ...]


def read_turn(file: str, family: str | None, message_id: str | None) -> Turn:
    """Read a response from a file, or from standard input (``-``).

    :param family: None: told by the response's shape
    :param message_id: None: the response's own id, else one made of the file's content
    :raises Refused: if the file cannot be read, or is no response with calls; the text says where and what to do
    """
    content = _read(file)
    response = _object(_decode(content, file), file)
    seen = _family_of(response)
    calls = parse_calls(response, family or _recognised(seen, response, file))
    if not calls:
        raise Refused(_no_calls(file, response, family, seen))
    own = next((response[name] for name in _IDS if isinstance(response.get(name), str) and response[name]), None)
    message = message_id or own or f"file-{hashlib.sha256(content).hexdigest()[:16]}"
    require_storable(message, "the message id")
    return Turn(family=family or seen or "openai", message_id=message, calls=_identified(calls))


def _identified(calls: list[ToolCall]) -> tuple[ToolCall, ...]:
    """Return the calls, each with an id of its own that is the same at the next reading."""
    whole = [
        call if call.id else replace(call, id=stable_call_id(position, call.name, call.arguments))
        for position, call in enumerate(calls)
    ]
    return tuple(unique_ids(whole))


def _read(file: str) -> bytes:
    try:
        if file == "-":
            content = sys.stdin.buffer.read(LARGEST + 1) if sys.stdin is not None else b""
        else:
            with Path(file).open("rb") as opened:
                content = opened.read(LARGEST + 1)
    except FileNotFoundError:
        raise Refused(
            f"there is no file {file!r}; name a file with a provider's response, or - for standard input"
        ) from None
    except IsADirectoryError:
        raise Refused(f"{file!r} is a folder; name a file with a provider's response") from None
    except (OSError, ValueError) as error:
        raise Refused(f"{file!r} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if len(content) > LARGEST:
        raise Refused(f"{_name(file)} is larger than {LARGEST // 1024 // 1024} MB; it cannot be one provider response")
    return content


def _decode(content: bytes, file: str) -> Any:
    if not content.strip():
        raise Refused(f"{_name(file)} is empty; give a provider's whole response, as JSON")
    try:
        text = content.decode(json.detect_encoding(content))
    except UnicodeDecodeError as error:
        raise Refused(f"{_name(file)} is no text: byte {error.start} is not {error.encoding}") from error
    text = text.removeprefix("\ufeff")
    if text.lstrip().startswith(("data:", "event:", ": ")):
        raise Refused(f"{_name(file)} is a recorded stream; give the whole response that it adds up to")
    try:
        return json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        said = f"{error.msg[:1].lower()}{error.msg[1:]}"
        extra = " (one response to a file, please)" if error.msg == "Extra data" else ""
        raise Refused(
            f"{_name(file)} is not JSON: {said} at line {error.lineno}, column {error.colno}{extra}"
        ) from error
    except (ValueError, RecursionError) as error:
        said = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise Refused(f"{_name(file)} is not JSON that can be used: {said}") from error


def _no_constant(name: str) -> Any:
    raise ValueError(f"it holds {name}, which JSON does not have")


def _object(value: Any, file: str) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    raise Refused(f"{_name(file)} holds {kind_of_json(value)}; a provider's response is one object, so pass it whole")


def _family_of(response: dict[str, Any]) -> str | None:
    if isinstance(response.get("choices"), list):
        return "openai"
    if isinstance(response.get("output"), list):
        return "openai.responses"
    if isinstance(response.get("candidates"), list):
        return "google"
    if isinstance(response.get("content"), list):
        return "anthropic"
    return None


def _recognised(family: str | None, response: dict[str, Any], file: str) -> str:
    if family is not None:
        return family
    if response.get("error"):
        raise Refused(f"{_name(file)} is a provider's error, not a response with calls: {_error_text(response)}")
    keys = ", ".join(list(response)[:8]) or "none"
    known = ", ".join(name for name in FAMILIES if name != "openai.chat")
    raise Refused(
        f"{_name(file)} has the shape of no known provider's response (its keys: {keys}); "
        f"if it is one, say which: --family {{{known}}}"
    )


def _error_text(response: dict[str, Any]) -> str:
    error = response["error"]
    return str(error.get("message", error) if isinstance(error, dict) else error)[:200]


def _no_calls(file: str, response: dict[str, Any], family: str | None, seen: str | None) -> str:
    if family is not None and seen is not None and seen.partition(".")[0] != family.partition(".")[0]:
        return f"{_name(file)} has no calls in {family}'s form, but looks like {seen}'s; leave --family out"
    if family is not None and seen is None:
        return f"{_name(file)} has no calls in {family}'s form (its keys: {', '.join(list(response)[:8]) or 'none'})"
    return f"{_name(file)} has no tool calls: there is nothing to run"


def _name(file: str) -> str:
    return "standard input" if file == "-" else repr(file)
