"""Responses: a reply as the tool's result, ``{status_code, data, message}`` (TOOLS 3; docs/api_tool.md)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from engine.api.decoding import Content, decoded
from engine.api.masking import Masker
from engine.api.operation import Operation, compiled
from engine.api.wording import text_of
from engine.contract import ToolResult
from engine.net.reply import Reply

__all__ = ("ERROR_TEXT", "SUCCESS", "UNAPPLIED", "failure", "projected", "result_of")

SUCCESS: Final = "API call successful."

ERROR_TEXT: Final = 16_384
"""Characters that are kept of an error's body."""

UNAPPLIED: Final = (ValueError, LookupError, TypeError, ArithmeticError, RecursionError)
"""What a JMESPath raises that cannot be applied to a response; its own errors are of the first."""

_TOLD: Final = ("location", "link")
_ASKED_FOR: Final = ("allow", "content-length", "content-type", "etag", "last-modified", "accept-ranges")


def failure(message: str) -> ToolResult:
    """Return the result of a call that brought no response."""
    return ToolResult({"status_code": None, "data": None, "message": message}, status="error")


def result_of(reply: Reply, operation: Operation, masker: Masker, content: Content | None = None) -> ToolResult:
    """Return a reply as a result, without the secrets of its request; never raises.

    From 400 on its status is ``error``, and of its body no more than :data:`ERROR_TEXT` characters are kept. Of any
    other, ``operation.project`` is applied to the body where that is JSON.

    :param content: the reply's, where it is decoded already
    """
    content = _masked(decoded(reply) if content is None else content, reply, masker)
    is_error = reply.status >= 400
    if is_error:
        content = _bounded(content)
        message = ". ".join([f"HTTP Error {reply.status}", *_sentences([*_wait(reply), *content.notes])])
    else:
        content = projected(content, operation.project)
        message = " ".join([SUCCESS, *_redirected(reply), *content.notes])
    result = {"status_code": reply.status, "data": content.data, "message": message, **_told(reply, _TOLD, masker)}
    if operation.method in ("HEAD", "OPTIONS"):
        result["headers"] = _told(reply, _ASKED_FOR, masker)
    return ToolResult(result, status="error" if is_error else "completed")


def _told(reply: Reply, names: Iterable[str], masker: Masker) -> dict[str, str]:
    found = {name: reply.header(name) for name in names}
    return {name: masker.text(value) for name, value in found.items() if value}


def _sentences(notes: Iterable[str]) -> list[str]:
    joined = " ".join(notes)
    return [joined] if joined else []


def _wait(reply: Reply) -> Iterable[str]:
    stated = reply.header("retry-after") or ""
    return (f"The API says when to try again: Retry-After: {stated}.",) if 0 < len(stated) <= 40 else ()


def _redirected(reply: Reply) -> Iterable[str]:
    if reply.status >= 300 and reply.header("location"):
        return ('It redirects to "location", which was not followed.',)
    return ()


def _masked(content: Content, reply: Reply, masker: Masker) -> Content:
    if content.kind == "bytes" and masker.occurs_in(reply.body):
        return Content(None, ("Its bytes hold the tool's credential, so they are withheld.",))
    return Content(masker.value(content.data), tuple(map(masker.text, content.notes)), content.kind)


def _bounded(content: Content) -> Content:
    if content.kind == "bytes":
        kept = {key: item for key, item in content.data.items() if key != "base64"}
        return Content(kept, content.notes, "bytes")
    text = "" if content.data is None else text_of(content.data)
    if len(text) <= ERROR_TEXT:
        return content
    return Content(text[:ERROR_TEXT], (*content.notes, f"Of its text the first {ERROR_TEXT} characters are given."))


def projected(content: Content, expression: str | None) -> Content:
    """Return what a JMESPath leaves of JSON; where it cannot be applied, all of it, with a note."""
    if expression is None or content.data is None:
        return content
    if content.kind != "json":
        return Content(content.data, (*content.notes, "It is no JSON, so it was not projected."), content.kind)
    try:
        return Content(compiled(expression).search(content.data), content.notes, "json")
    except UNAPPLIED as error:
        note = f"It could not be projected ({type(error).__name__}), so it is given whole."
        return Content(content.data, (*content.notes, note), "json")
