"""Results: whatever a tool returned becomes clean JSON content, its encoded form, a preview and a status (DESIGN 6)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable
from functools import cached_property, partial
from io import BytesIO
from typing import Any, Final

import anyio.to_thread
import msgspec

from engine.cleaning import RESULT_TEXT, mended
from engine.contract import ToolResult
from engine.jsonform import LISTED, NoJsonForm, encode, formed, is_plain
from engine.preview import MARK, cut_text
from engine.settings import Limits
from events.types import ResultStatus

__all__ = ("Finished", "finish", "finish_quickly", "finish_result", "looked_through", "preview_of", "status_of")

_AT_ONCE: Final = 1 << 21
"""Characters of a text, or bytes of encoded JSON, up to which the event loop waits: a few milliseconds' worth."""

_WHOLE: Final = 1 << 24
"""Characters of a text that are encoded in one call, which holds the interpreter: at most 40 ms."""

_CHECKED: Final = 1 << 18
"""Bytes of JSON up to which a result is looked through at once for values that are no JSON content themselves."""

_LIMITS: Final = Limits()


class Finished(msgspec.Struct, frozen=True, dict=True):
    """A result in the forms that the rest needs; what costs time is made when it is asked for, once.

    :ivar encoded: the result's JSON in UTF-8, for the log
    :ivar preview: at most the limit's characters of ``text``, then ``...`` where it was cut
    :ivar status: what the result says of itself (in-band), never guessed from wording
    """

    encoded: bytes
    preview: str
    status: ResultStatus
    _given: Any
    _plain: bool

    @property
    def value(self) -> Any:
        """The result as JSON content: the very object the tool returned, where that is JSON content and clean."""
        return self._given if self._plain else self._read

    @property
    def is_read(self) -> bool:
        """Whether ``value`` is at hand."""
        return self._plain or "_read" in self.__dict__

    @cached_property
    def _read(self) -> Any:
        return self._given if is_plain(self._given) else msgspec.json.decode(self.encoded)

    @cached_property
    def text(self) -> str:
        """The result as text: a string itself, anything else its JSON text."""
        return self._given if isinstance(self._given, str) else self.encoded.decode()

    @property
    def is_long(self) -> bool:
        """Whether looking through it takes longer than the event loop should wait."""
        return len(self.encoded) > _AT_ONCE

    @property
    def length(self) -> int:
        """Characters of ``text``."""
        return len(self.text)


def finish(raw: Any, limits: Limits = _LIMITS) -> Finished:
    """Return what a tool returned in its finished form; never raises on account of the value.

    Text and keys lose control characters other than tab, line feed and carriage return (BEHAVIOUR 113, 125). What has
    no JSON form (it holds itself, it is nested too deeply) becomes an error result that says so, for the tool did run.
    A clean result costs one encoding and a look at the encoded bytes. In a result past 256 KiB a set's members may
    stand in any order.

    :raises Exception: what the tool's own iterator raises while it is listed
    """
    content = _unwrapped(raw)
    if type(content) is str:
        return _finish_text(raw, content, limits)
    quick = finish_quickly(raw, limits)
    return quick if quick is not None else _finish_thoroughly(raw, limits)


async def finish_result(raw: Any, limits: Limits = _LIMITS) -> Finished:
    """Do :func:`finish` without holding up the event loop: what is long or not plain is worked on in a thread.

    An async iterator is listed first, like any other. A cancellation takes effect when the thread is done.

    :raises Exception: what the tool's own iterator raises while it is listed
    """
    content = _unwrapped(raw)
    if isinstance(content, AsyncIterable):
        listed = await _listed(content)
        raw = ToolResult(listed, raw.status) if isinstance(raw, ToolResult) else listed
    quick = finish_quickly(raw, limits)
    if quick is None:
        return await anyio.to_thread.run_sync(partial(finish, raw, limits))
    return await looked_through(quick)


async def looked_through(finished: Finished) -> Finished:
    """Return a result whose ``value`` is at hand: a long one's is made in a thread."""
    if finished.is_long and not finished.is_read:
        await anyio.to_thread.run_sync(getattr, finished, "value")
    return finished


def status_of(raw: Any, content: Any) -> ResultStatus:
    """Return the in-band status: a ``ToolResult`` or an exception says it, or an object's ``status`` or ``error``.

    (BEHAVIOUR 127.)
    """
    if isinstance(raw, BaseException) or (isinstance(raw, ToolResult) and raw.status == "error"):
        return "error"
    if isinstance(content, dict) and (content.get("status") == "error" or content.get("error")):
        return "error"
    return "completed"


def _unwrapped(raw: Any) -> Any:
    return raw.data if isinstance(raw, ToolResult) else raw


def finish_quickly(raw: Any, limits: Limits = _LIMITS) -> Finished | None:
    """Finish a result that is clean JSON content as it stands, or text that is not very long.

    None for anything else, of which nothing is used up: :func:`finish_result` does it.
    """
    content = _unwrapped(raw)
    if type(content) is str:
        return None if len(content) > _AT_ONCE else _finish_text(raw, content, limits)
    try:
        encoded = encode(content)
    except (TypeError, ValueError, OverflowError):
        return None
    if RESULT_TEXT.touches(encoded):
        return None
    plain = len(encoded) <= _CHECKED and is_plain(content)
    if not plain and not (len(encoded) > _CHECKED and _says_its_status(content)):
        return None
    return Finished(encoded, preview_of(encoded, limits.preview), status_of(raw, content), content, plain)


def _says_its_status(content: Any) -> bool:
    """Tell whether the status of a long result can be read off before it is known to be JSON content throughout."""
    if type(content) is dict:
        return is_plain([content.get("status"), content.get("error")])
    return type(content) is list


def _finish_thoroughly(raw: Any, limits: Limits) -> Finished:
    try:
        value = formed(_unwrapped(raw), RESULT_TEXT)
        if isinstance(value, str):
            return _finish_text(raw, value, limits)
        encoded = encode(value)
    except NoJsonForm as error:
        value = {"status": "error", "error": str(error)}
        encoded = encode(value)
    return Finished(encoded, preview_of(encoded, limits.preview), status_of(raw, value), value, True)


def _finish_text(raw: Any, content: str, limits: Limits) -> Finished:
    text, encoded = _encode_clean(content)
    return Finished(encoded, cut_text(text, limits.preview), status_of(raw, text), text, True)


def _encode_clean(text: str) -> tuple[str, bytes]:
    """Return text without what results lose, and its JSON."""
    if text.isascii() or len(text) > _WHOLE:
        text = RESULT_TEXT.without_removed(text)
        return _encode_mended(text)
    try:
        encoded = encode(text)
    except UnicodeEncodeError:
        return _encode_mended(RESULT_TEXT.without_removed(text))
    # Beyond ASCII a character is looked for in the encoded bytes: in text of more than a byte each it takes longer.
    if not RESULT_TEXT.touches(encoded):
        return text, encoded
    text = RESULT_TEXT.without_removed(text)
    return text, encode(text)


def _encode_mended(text: str) -> tuple[str, bytes]:
    try:
        return text, _encode_text(text)
    except UnicodeEncodeError:
        text = mended(text)
        return text, _encode_text(text)


def _encode_text(text: str) -> bytes:
    if len(text) <= _WHOLE:
        return encode(text)
    # In pieces, so that other threads have their turn; a file gives what was written away without another copy.
    with BytesIO() as out:
        out.write(b'"')
        for start in range(0, len(text), _AT_ONCE):
            out.write(memoryview(encode(text[start : start + _AT_ONCE]))[1:-1])
        out.write(b'"')
        return out.getvalue()


def preview_of(encoded: bytes, limit: int) -> str:
    """Cut JSON text without decoding more of it than the preview can hold."""
    window = 4 * (limit + len(MARK) + 1)
    head = encoded if len(encoded) <= window else encoded[:window]
    return cut_text(head.decode(errors="ignore"), limit)


async def _listed(items: AsyncIterable[Any]) -> list[Any]:
    out: list[Any] = []
    try:
        async for item in items:
            if len(out) == LISTED:
                out.append({"truncated": True, "listed": LISTED})
                break
            out.append(item)
    finally:
        if isinstance(items, AsyncGenerator):
            await items.aclose()
    return out
