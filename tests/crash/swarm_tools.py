"""The tools of a swarm, each of which leaves one line per effect in a file of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import anyio
import anyio.lowlevel
import msgspec

from engine import InputRequired, Tool, ToolContext, ToolRow
from events.keys import call_digest, tenant_column

__all__ = ("IDEMPOTENT", "ROWS", "TOOLS", "Effect", "add_line", "effects_in")

PARAMETERS = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
ASKED = {"require_approval": True}
REPEATABLE = {"idempotent": True}


class Effect(msgspec.Struct, frozen=True):
    """What a tool did.

    :ivar key: the call's, after the tenant's column
    :ivar process: where it was done
    :ivar asked: nothing was done yet but asking for input
    """

    tool: str
    key: str
    digest: str
    process: str
    asked: bool = False


def add_line(path: Path, line: msgspec.Struct) -> None:
    """Add a whole line to a file, which others may do at the same time; it is there when its writer is killed."""
    with path.open("ab", buffering=0) as file:
        file.write(msgspec.json.encode(line) + b"\n")


def effects_in(folder: Path) -> Iterator[Effect]:
    """Yield every effect that tools had."""
    for path in sorted(folder.glob("*.effects")):
        for line in path.read_bytes().splitlines():
            yield msgspec.json.decode(line, type=Effect)


class Marking(Tool):
    """Leaves a mark per run: the folder and the process's name are in the environment."""

    timeout = 3.0
    entry: ClassVar[dict[str, Any]] = {}

    def get_actions_metadata(self) -> list[dict[str, Any]]:
        return [{"name": self.name, "parameters": PARAMETERS, **self.entry}]

    def get_config_requirements(self) -> dict[str, Any]:
        return {}

    def mark(self, context: ToolContext, arguments: dict[str, Any], *, asked: bool = False) -> None:
        """Have the effect."""
        key = f"{tenant_column(context.user_id)} {context.idempotency_key}"
        digest = call_digest(self.scope.tool_id, self.name, arguments)
        effect = Effect(self.name, key, digest, os.environ["SWARM_NAME"], asked)
        add_line(Path(os.environ["SWARM_FOLDER"]) / f"{self.name}.effects", effect)

    async def execute_action(self, action_name: str, context: ToolContext, /, **kwargs: Any) -> Any:
        self.mark(context, kwargs)
        await anyio.lowlevel.checkpoint()
        return {"done": kwargs}


class Plain(Marking):
    name = "plain"


class Slow(Marking):
    """Sync: it works in a thread, before and after its effect."""

    name = "slow"

    def execute_action(self, action_name: str, context: ToolContext, /, **kwargs: Any) -> Any:
        anyio.from_thread.run(anyio.sleep, 0.01)
        self.mark(context, kwargs)
        anyio.from_thread.run(anyio.sleep, 0.02)
        return f"done {kwargs['n']}"


class Fails(Marking):
    name = "fails"

    async def execute_action(self, action_name: str, context: ToolContext, /, **kwargs: Any) -> Any:
        self.mark(context, kwargs)
        raise ValueError(f"no {kwargs['n']}")


class Again(Marking):
    """May be run again by another worker when the first one died."""

    name = "again"
    entry = REPEATABLE

    async def execute_action(self, action_name: str, context: ToolContext, /, **kwargs: Any) -> Any:
        self.mark(context, kwargs)
        await anyio.sleep(0.03)
        return {"done": kwargs}


class Gated(Slow):
    name = "gated"
    entry = ASKED


class GatedAgain(Again):
    name = "gated_again"
    entry = ASKED | REPEATABLE


class Asks(Marking):
    """Asks for input first."""

    name = "asks"

    async def execute_action(self, action_name: str, context: ToolContext, /, **kwargs: Any) -> Any:
        if isinstance(context.answer, msgspec.UnsetType):
            self.mark(context, kwargs, asked=True)
            return InputRequired({"which": kwargs["n"]})
        self.mark(context, kwargs)
        return {"answer": context.answer}


TOOLS: tuple[type[Marking], ...] = (Plain, Slow, Fails, Again, Gated, GatedAgain, Asks)
IDEMPOTENT = frozenset(tool.name for tool in TOOLS if tool.entry.get("idempotent"))
ROWS = [ToolRow(id=tool.name, name=tool.name) for tool in TOOLS]
