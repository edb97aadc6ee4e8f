"""The tools of the fault matrix: every run leaves a line in a file; one can be held where it stands."""

from __future__ import annotations

import os
from typing import Any

import anyio
import anyio.lowlevel
import msgspec

from engine import InputRequired, Tool, ToolContext, ToolRow

__all__ = ("CLIENT", "ROWS", "Stage", "effects_in")

ROWS = (ToolRow(id="t1", name="works", user_id="u"), ToolRow(id="t2", name="threaded", user_id="u"))
CLIENT = {"name": "client", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}}

_NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}}
_ACTIONS: tuple[tuple[str, dict[str, bool]], ...] = (
    ("ring", {}),
    ("ask", {}),
    ("gated", {"require_approval": True}),
    ("again", {"idempotent": True}),
    ("gated_again", {"require_approval": True, "idempotent": True}),
)


class Stage:
    """Where the tool plays: what it waits for, and where its effects are noted.

    :ivar effects: the file of its marks
    :ivar holds: a call of the tool waits, after its effect, until it is released
    :ivar finished: whoever plays beside the consumer has ended
    :ivar gates: a call that has one waits for it before its effect
    """

    def __init__(self, effects: str, holds: bool = False, gates: tuple[str, ...] = ()) -> None:
        self.effects = effects
        self._file = os.open(effects, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.holds = holds
        self.held = 0
        self.changed = anyio.Event()
        self.released = anyio.Event()
        self.finished = anyio.Event()
        self.gates = {call_id: anyio.Event() for call_id in gates}

    async def wait_held(self, number: int) -> None:
        """Wait until so many calls are held."""
        while self.held < number:
            await self.changed.wait()

    async def play(self, action: str, context: ToolContext, n: int) -> Any:
        """Do what the tool does: ask if it has to, leave a mark, answer."""
        if context.call_id in self.gates:
            await self.gates[context.call_id].wait()
        await anyio.lowlevel.checkpoint()
        if action == "ask" and context.answer is msgspec.UNSET:
            return InputRequired({"question": "which?"})
        self.mark(context, n)
        if self.holds:
            await self._hold()
        await anyio.lowlevel.checkpoint()
        return f"did {n}"

    def mark(self, context: ToolContext, n: int) -> None:
        """Leave a mark: one write, so that the line of a killed process is there whole, or not at all."""
        os.write(self._file, f"{context.idempotency_key} {n}\n".encode())

    async def _hold(self) -> None:
        self.held += 1
        changed, self.changed = self.changed, anyio.Event()
        changed.set()
        await self.released.wait()

    def tools(self) -> tuple[type[Tool], type[Tool]]:
        """Return the tool that plays here, and a sync one."""
        stage = self

        class Works(Tool):
            """Leaves a mark per run."""

            name = "works"

            def get_actions_metadata(self) -> list[dict[str, Any]]:
                return [{"name": name, "parameters": _NUMBER, **facts} for name, facts in _ACTIONS]

            def get_config_requirements(self) -> dict[str, Any]:
                return {}

            async def execute_action(self, action_name: str, context: ToolContext, /, **kwargs: Any) -> Any:
                return await stage.play(action_name, context, kwargs["n"])

        class Threaded(Works):
            """Does it in a thread, which nothing can stop."""

            name = "threaded"

            def get_actions_metadata(self) -> list[dict[str, Any]]:
                return [{"name": "strike", "parameters": _NUMBER}]

            def execute_action(self, action_name: str, context: ToolContext, /, **kwargs: Any) -> Any:
                stage.mark(context, kwargs["n"])
                return f"did {kwargs['n']}"

        return Works, Threaded


def effects_in(text: str) -> dict[str, list[int]]:
    """Return, by key, the argument with which each run of the tool left its mark."""
    found: dict[str, list[int]] = {}
    for line in text.splitlines():
        key, _, n = line.rpartition(" ")
        found.setdefault(key, []).append(int(n))
    return found
