"""Answers in the form in which each family of providers takes tool results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.answer_text import Answer
from engine.families import family_of

__all__ = ("result_messages",)


def result_messages(answers: Sequence[Answer], family: str) -> list[dict[str, Any]]:
    """Return the messages that answer a turn's calls; an empty list where there were none.

    ``openai``: one ``tool`` message per call; ``openai.responses``: one ``function_call_output`` item per call;
    ``anthropic`` and ``google``: one user message with a block per call; ``mcp``: one tool result per call. A denial is
    no error in Anthropic's sense: told so, models try again or reach for the effect by another tool (APPROVAL-07).
    """
    if not answers:
        return []
    match family_of(family):
        case "openai":
            return [{"role": "tool", "tool_call_id": _id(answer), "content": answer.text} for answer in answers]
        case "openai.responses":
            return [
                {"type": "function_call_output", "call_id": _id(answer), "output": answer.text} for answer in answers
            ]
        case "anthropic":
            return [{"role": "user", "content": [_anthropic(answer) for answer in answers]}]
        case "google":
            return [{"role": "user", "parts": [_google(answer) for answer in answers]}]
        case "mcp":
            return [
                {"content": [{"type": "text", "text": answer.text}], "isError": answer.outcome != "result"}
                for answer in answers
            ]


def _id(answer: Answer) -> str:
    return answer.call.id or ""


def _anthropic(answer: Answer) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": _id(answer), "content": answer.text}
    if answer.outcome in ("error", "open"):
        block["is_error"] = True
    return block


def _google(answer: Answer) -> dict[str, Any]:
    response: dict[str, Any]
    match answer.outcome:
        case "result":
            response = answer.value if isinstance(answer.value, dict) else {"result": answer.value}
        case "error":
            response = {"error": answer.value}
        case "denied":
            response = {"denied": answer.text}
        case "open":
            response = {"error": answer.text}
    part: dict[str, Any] = {
        "functionResponse": {"id": _id(answer), "name": answer.call.name or "", "response": response}
    }
    # A thought signature belongs to the call's part; given back with the result it finds its way there.
    if "thoughtSignature" in answer.call.extra:
        part["thoughtSignature"] = answer.call.extra["thoughtSignature"]
    return part
