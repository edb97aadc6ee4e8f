"""Asking a person on the terminal whether a call may run."""

from __future__ import annotations

import os
import sys
from typing import TypeAlias

import anyio
import msgspec

from engine.cli.output import note
from engine.cli.plain import json_text, one_line
from events.codec import decode_json
from events.masking import masked
from events.types import Paused

__all__ = ("Answer", "Approve", "Later", "Reject", "ask")

_LONGEST = 65_536


class Approve(msgspec.Struct, frozen=True):
    """Run it; ``arguments`` where they were edited, JSON content."""

    arguments: dict[str, object] | None = None


class Reject(msgspec.Struct, frozen=True):
    """Do not run it; ``reason`` is for the model."""

    reason: str | None = None


class Later(msgspec.Struct, frozen=True):
    """Leave it waiting."""


Answer: TypeAlias = Approve | Reject | Later


async def ask(pause: Paused) -> Answer:
    """Show a call and ask what to do with it; the end of the input means later."""
    _say(f"{one_line(f'{pause.tool_name}.{pause.action_name}')} wants to run with {json_text(masked(pause.arguments))}")
    _say(f"  {one_line(pause.reason)} ({one_line(pause.rule or '-')})")
    while True:
        answer = await _line("run it? [y]es, [n]o, [e]dit, [l]ater: ")
        match None if answer is None else answer.lower():
            case "y" | "yes":
                return Approve()
            case "n" | "no":
                return Reject(await _line("why not, for the model (may be empty): ") or None)
            case "e" | "edit":
                arguments = await _line("the arguments to run, one JSON object: ")
                edited = _decoded(arguments or "")
                if edited is not None:
                    return Approve(edited)
            case "l" | "later" | None:
                return Later()
            case _:
                _say("answer y, n, e or l")


def _decoded(text: str) -> dict[str, object] | None:
    try:
        arguments = decode_json(text)
    except (msgspec.DecodeError, RecursionError) as error:
        note(f"that is no JSON: {error}")
        return None
    if not isinstance(arguments, dict):
        note("that is no JSON object")
        return None
    return arguments


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


async def _line(prompt: str) -> str | None:
    """Return a line from the terminal, None at its end; waiting for it holds up nothing and can be cancelled."""
    print(prompt, end="", file=sys.stderr, flush=True)
    # Past the buffer of sys.stdin: a terminal hands out one line a read, and what is buffered would not wake us.
    await anyio.wait_readable(sys.stdin)
    read = os.read(sys.stdin.fileno(), _LONGEST)
    if not read:
        _say("")
        return None
    return read.decode(sys.stdin.encoding or "utf-8", "replace").strip()
