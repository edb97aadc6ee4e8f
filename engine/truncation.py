"""Results cut for the model: JSON that says it was cut, shows both ends, and names where the rest is (DESIGN 4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from engine.preview import boundary
from events.codec import encode_json
from events.errors import Refused

__all__ = ("SMALLEST", "Truncated", "cut_for_model")

SMALLEST = 200
"""The least limit, in characters: below it nothing but the notice itself would fit."""

_HEAD_SHARE = 0.6


class Truncated(msgspec.Struct, frozen=True, kw_only=True):
    """A cut result. ``total`` is the whole text's length in characters; ``read`` is the key ``read_result`` takes."""

    truncated: bool = True
    total: int
    head: str
    tail: str
    read: str


def cut_for_model(value: Any, text: str, key: str, limit: int | None, fence: Callable[[str], str] | None = None) -> str:
    """Return a result's text as the model gets it: whole, or at most ``limit`` characters, the notice included.

    Cutting the same result again gives the same text, and a result that is such a notice itself is cut in its ends, so
    that notices never nest (TRUNCATE-02). Neither end is cut within a grapheme.

    :param value: the result; ``text``: a string itself, anything else its JSON text
    :param fence: sets marks around the text; they count, and are never cut. A result in a fence is no notice, whatever
        it says of itself. Where no end of it has room, neither has the fence: the notice alone is nobody else's text
    :raises Refused: if ``limit`` is less than :data:`SMALLEST`
    """
    whole = text if fence is None else fence(text)
    if limit is None or len(whole) <= limit:
        return whole
    if limit < SMALLEST:
        raise Refused(f"a limit of {limit} characters leaves no room for a result; give at least {SMALLEST}")
    if fence is not None:
        shown = _fitted(text, text, len(text), key, limit - len(whole) + len(text))
        return shown if shown == _bare(len(text), key) else fence(shown)
    cut = _notice(value)
    if cut is None:
        return _fitted(text, text, len(text), key, limit)
    return _fitted(cut.head, cut.tail, cut.total, cut.read, limit)


def _notice(value: Any) -> Truncated | None:
    if isinstance(value, dict) and value.keys() == set(Truncated.__struct_fields__) and value["truncated"] is True:
        try:
            return msgspec.convert(value, Truncated)
        except msgspec.ValidationError:
            return None
    return None


def _fitted(head: str, tail: str, total: int, key: str, limit: int) -> str:
    """Return the longest notice within the limit; escapes in the ends count as the characters they become."""
    room = limit - len(_bare(total, key))
    share = 1.0
    while True:
        ends = max(0, int(room * share))
        first = int(ends * _HEAD_SHARE)
        shown = _form(Truncated(total=total, head=_start(head, first), tail=_end(tail, ends - first), read=key))
        if len(shown) <= limit or ends == 0:
            return shown
        share *= min(0.98, limit / len(shown))


def _start(text: str, length: int) -> str:
    return text[: boundary(text, length)] if length < len(text) else text


def _end(text: str, length: int) -> str:
    if length >= len(text):
        return text
    place = len(text) - length
    # Forwards to the next place between graphemes: the end may only get shorter.
    while place < len(text) and boundary(text, place) != place:
        place += 1
    return text[place:]


def _bare(total: int, key: str) -> str:
    return _form(Truncated(total=total, head="", tail="", read=key))


def _form(notice: Truncated) -> str:
    return encode_json(notice).decode()
