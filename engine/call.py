"""Provider payloads become typed calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec

from engine.families import family_of
from engine.journalled import journal_form
from engine.refusals import kind_of_json
from events.errors import Refused
from events.keys import canonical_bytes, digest_of

__all__ = ("ToolCall", "broken_off", "parse_calls", "stable_call_id", "unique_ids")

_ENDED_EARLY = ("length", "content_filter", "max_tokens", "model_context_window_exceeded")


class ToolCall(msgspec.Struct, frozen=True, gc=False):
    """One call as the model made it: ``arguments`` as sent (JSON text, bytes, an object, or None).

    ``extra`` keeps what must go back to the provider unchanged, e.g. Google's thought signature. ``cut_off`` marks a
    call whose end never came: it is refused, whatever arrived of it.
    """

    id: str | None = None
    name: str | None = None
    arguments: Any = None
    extra: dict[str, Any] = {}
    cut_off: bool = False


class _Wire(msgspec.Struct, frozen=True, kw_only=True):
    """One call in any of the wire forms; fields are untyped because servers get their types wrong too."""

    type: Any = None
    id: Any = None
    call_id: Any = None
    name: Any = None
    arguments: Any = None
    input: Any = None
    args: Any = None
    function: Any = None
    custom: Any = None
    namespace: Any = None
    status: Any = None
    extra_content: Any = None


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One part of a Google content; its SDK's dumps use the snake form of the same names."""

    function_call: Any = None
    thought_signature: Any = None


W = TypeVar("W", bound=msgspec.Struct)


def parse_calls(response: dict[str, Any], family: str) -> list[ToolCall]:
    """Return the calls of one whole provider response (not a stream), in the order in which the model made them.

    ``openai`` takes Chat Completions and Responses and tells them apart by their shape; a family nobody knows follows
    its rules. Ids are kept as they came, empty or absent ones too (the engine generates one), except that Google's
    absent ids become :func:`stable_call_id`. Calls that the provider runs itself are not ours and are left out. A
    call with broken fields is kept, so that it can be answered; a response without calls gives an empty list. Of
    several alternatives (choices, candidates) the first that has calls counts. Where the provider says that it stopped
    in the middle (its token limit), a last call without arguments is ``cut_off``: they may never have come.

    :raises Refused: if the response is no object
    """
    if not isinstance(response, dict):
        raise Refused(f"a provider response must be a JSON object, not {kind_of_json(response)}; pass it whole")
    match family_of(family):
        case "anthropic":
            calls = list(_anthropic(response))
            return broken_off(calls, response.get("stop_reason"))
        case "google":
            return _google(response)
    if "choices" not in response and isinstance(response.get("output"), list):
        return list(_responses(response["output"]))
    return _chat(response)


def stable_call_id(position: int, name: str | None, arguments: Any) -> str:
    """Return an id for a call that came without one: the same whenever the same response is parsed again.

    ``position`` counts the calls of the response from 0, so that two equal calls differ.
    """
    digest = digest_of(b"call", str(position).encode(), canonical_bytes(journal_form([name, arguments])))
    return f"call_{digest[:24]}"


def unique_ids(calls: list[ToolCall]) -> list[ToolCall]:
    """Return the calls with no id twice (PARSE-10): the second ``k1`` becomes ``k1#2``, deterministically.

    A call whose id is new, empty or absent is returned as it is. Whoever sends these ids back to a provider must send
    them in the assistant's message as well.
    """
    taken = {call.id for call in calls}
    seen: set[str] = set()
    unique: list[ToolCall] = []
    for call in calls:
        if call.id and call.id in seen:
            number = 2
            while (fresh := f"{call.id}#{number}") in taken:
                number += 1
            taken.add(fresh)
            call = msgspec.structs.replace(call, id=fresh)
        if call.id:
            seen.add(call.id)
        unique.append(call)
    return unique


def broken_off(calls: list[ToolCall], reason: object) -> list[ToolCall]:
    """Return a response's calls; if it stopped for a reason that means in the middle, an empty last one is cut off."""
    if calls and not calls[-1].arguments and reason in _ENDED_EARLY:
        calls[-1] = msgspec.structs.replace(calls[-1], cut_off=True)
    return calls


def _chat(response: dict[str, Any]) -> list[ToolCall]:
    for choice in _dicts(response.get("choices")):
        message = choice.get("message")
        if not isinstance(message, dict):
            continue
        calls = [_chat_call(item) for item in _dicts(message.get("tool_calls"))]
        # The form before tool_calls: one call without an id.
        if not calls and isinstance(message.get("function_call"), dict):
            calls = [_chat_call({"function": message["function_call"]})]
        if calls:
            return broken_off(calls, choice.get("finish_reason"))
    return []


def _chat_call(item: dict[str, Any]) -> ToolCall:
    wire = _wire(_Wire, item)
    function = _wire(_Wire, wire.function if isinstance(wire.function, dict) else wire.custom)
    return ToolCall(
        id=_text(wire.id),
        name=_text(function.name),
        arguments=function.arguments if wire.custom is None else function.input,
        extra=_kept(extra_content=wire.extra_content),
    )


def _responses(output: list[Any]) -> Iterator[ToolCall]:
    for item in _dicts(output):
        wire = _wire(_Wire, item)
        if wire.type in ("function_call", "custom_tool_call"):
            arguments = wire.arguments if wire.type == "function_call" else wire.input
            yield ToolCall(
                id=_text(wire.call_id if wire.call_id is not None else wire.id),
                name=_text(wire.name),
                arguments=arguments,
                extra=_kept(namespace=wire.namespace),
                cut_off=wire.status == "incomplete" and not arguments,
            )


def _anthropic(response: dict[str, Any]) -> Iterator[ToolCall]:
    for item in _dicts(response.get("content")):
        wire = _wire(_Wire, item)
        if wire.type == "tool_use":
            yield ToolCall(id=_text(wire.id), name=_text(wire.name), arguments=wire.input)


def _google(response: dict[str, Any]) -> list[ToolCall]:
    for candidate in _dicts(response.get("candidates")):
        content = candidate.get("content")
        parts = _dicts(content.get("parts")) if isinstance(content, dict) else ()
        calls: list[ToolCall] = []
        for item in parts:
            part = _part(item)
            if isinstance(part.function_call, dict):
                calls.append(_google_call(part, len(calls)))
        if calls:
            return calls
    return []


def _google_call(part: _Part, position: int) -> ToolCall:
    wire = _wire(_Wire, part.function_call)
    name = _text(wire.name)
    return ToolCall(
        id=_text(wire.id) or stable_call_id(position, name, wire.args),
        name=name,
        arguments=wire.args,
        extra=_kept(thoughtSignature=part.thought_signature),
    )


def _part(item: dict[str, Any]) -> _Part:
    if "function_call" in item:
        return _Part(function_call=item["function_call"], thought_signature=item.get("thought_signature"))
    return _wire(_Part, item)


def _wire(shape: type[W], item: Any) -> W:
    names = zip(shape.__struct_fields__, shape.__struct_encode_fields__, strict=True)
    return shape(**{field: item[name] for field, name in names if name in item}) if isinstance(item, dict) else shape()


def _dicts(value: Any) -> Iterator[dict[str, Any]]:
    return (item for item in value if isinstance(item, dict)) if isinstance(value, list) else iter(())


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _kept(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
