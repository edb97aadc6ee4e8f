"""A server that cannot go on without input: what it asks, and the answers in the form in which they go back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from engine.contract import InputRequired
from engine.mcp.errors import McpError

__all__ = ("InputRequest", "answers_to")

_ELICIT: Final = "elicitation/create"
_ROOTS: Final = "roots/list"
_SAMPLE: Final = "sampling/createMessage"
_ACTIONS: Final = ("accept", "decline", "cancel")


class InputRequest(msgspec.Struct, frozen=True):
    """What a server asks for.

    :ivar request: its questions to a person, by its own names for them
    :ivar answer: the answers so far, to what needs nobody
    :ivar state: what it wants back, unread
    """

    request: dict[str, Any]
    answer: dict[str, Any]
    state: str | None

    @staticmethod
    def of(result: Mapping[str, Any]) -> InputRequest | None:
        """Read a result; None: it asks for nothing.

        :raises McpError: if it asks for what is never given: the use of a model
        """
        if result.get("resultType") != "input_required":
            return None
        requests, state = result.get("inputRequests"), result.get("requestState")
        asked: dict[str, Any] = {}
        answered: dict[str, Any] = {}
        for name, request in requests.items() if isinstance(requests, Mapping) else ():
            method = request.get("method") if isinstance(request, Mapping) else None
            if method == _ELICIT:
                asked[name] = request.get("params") or {}
            elif method == _ROOTS:
                answered[name] = {"roots": []}
            else:
                what = "the use of a model" if method == _SAMPLE else "something that is not known here"
                raise McpError(f"the MCP server asks for {what}, which it does not get; nothing more was done")
        return InputRequest(asked, answered, state if isinstance(state, str) else None)

    def pause(self, reason: str = "") -> InputRequired:
        """Return what makes the call wait for a person."""
        request = {"input_requests": self.request, "answered": self.answer, "request_state": self.state}
        texts = [each["message"] for each in self.request.values() if isinstance(each.get("message"), str)]
        return InputRequired(request, reason or "; ".join(texts) or "the MCP server asks for input")


def answers_to(request: Any, answer: Any) -> InputRequest | str:
    """Return what goes back to the server (in ``answer``); a text says why the answer is none.

    An answer is an object by the questions' names, each ``{"action": "accept" | "decline" | "cancel", "content": {…}}``
    or, accepted, just the content. Where there is one question, its name may be left out.
    """
    asked = request.get("input_requests") if isinstance(request, Mapping) else None
    if not isinstance(asked, Mapping) or not isinstance(answer, Mapping):
        return "the answer must be an object"
    if len(asked) == 1 and not (set(answer) == set(asked) and isinstance(next(iter(answer.values())), Mapping)):
        answer = {next(iter(asked)): answer}
    if set(answer) != set(asked):
        return f"the answer must have one entry for each of {', '.join(sorted(map(str, asked)))}"
    given: dict[str, Any] = dict(request.get("answered") or {})
    for name, each in answer.items():
        if not isinstance(each, Mapping):
            return f"the answer to {name} must be an object"
        given[name] = dict(each) if each.get("action") in _ACTIONS else {"action": "accept", "content": dict(each)}
    return InputRequest({}, given, request.get("request_state"))
