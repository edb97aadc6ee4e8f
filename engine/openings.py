"""``engine.openings``: what the tools of a turn want a model to be told when a conversation starts.

It is read, never journalled: nobody decided on it and nothing is done by it, and what a model was shown is kept by
whoever keeps the conversation. A tool says nothing so that its actions could not read for the turn without a person.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from secrets import token_hex
from typing import Any, Final, TypeAlias

import anyio

from engine.actions import Action
from engine.context import CallContext, require_storable_ids
from engine.contract import ToolContext
from engine.gate import Allow, GateQuestion, check_pause
from engine.loading import LoadFailure, is_async, without_secrets
from engine.performance import ignore_progress
from engine.policy import Policy, PolicyQuestion
from engine.running import Broke
from engine.runtime import Runtime
from engine.text_fence import foreign
from engine.toolset import Member, Toolset
from engine.toolstore import ReadingStore
from events.errors import LogUnavailable
from events.keys import tenant_column

__all__ = ("LONGEST", "WITHIN", "Openings")

LONGEST: Final = 8_000
"""Characters of what one row has to say; what is longer is not said, for it cannot be cut within its marks."""

WITHIN: Final = 5.0
"""Seconds that one row may take."""

_log = logging.getLogger("calljournal.openings")

_Hook: TypeAlias = Callable[[ToolContext], Awaitable[str | None]]


class Openings:
    """Asks the tools of a turn that have an ``opening`` (see ``Tool``)."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def __repr__(self) -> str:
        return f"<Openings of {self._runtime.worker}>"

    async def __call__(self, context: CallContext) -> str:
        """Return one text for the application's system prompt, empty if there is nothing to tell.

        The turn's rows are asked, as for ``prepare_tools_for_llm``, all at once. One that fails, takes longer than
        ``WITHIN`` or says more than ``LONGEST`` is left out and logged; where the rules cannot be read, so are all.
        Nothing is written.

        :raises Refused: if an id of the context cannot be stored
        """
        require_storable_ids(context)
        toolset = await self._runtime.toolsets.resolve(context, now=True)
        asked = [member for member in toolset.members if callable(getattr(member.tool, "opening", None))]
        if not asked:
            return ""
        try:
            policy = await self._runtime.rulebook.fresh(context.user_id)
        except LogUnavailable as error:
            _log.warning("no tool is asked how a conversation opens, for the rules cannot be read: %s", error)
            return ""
        said = {member.row.id: "" for member in asked if self._is_free(toolset, member, context, policy)}

        async def ask(member: Member) -> None:
            said[member.row.id] = await self._said(member, context)

        async with anyio.create_task_group() as tasks:
            for member in asked:
                if member.row.id in said:
                    tasks.start_soon(ask, member)
        return "\n\n".join(_headed(toolset, said))

    def _is_free(self, toolset: Toolset, member: Member, context: CallContext, policy: Policy) -> bool:
        """Tell whether everything with which a row's tool reads is offered, and would run for this turn at once."""
        # What a toolset offers: a default row's actions may be collapsed into those of a stored one.
        offered = [toolset.action(member.row.id, action.name) for action in member.actions]
        reading = [action for action in offered if action is not None and action.effect == "read"]
        return bool(reading) and all(self._would_run(action, member, context, policy) for action in reading)

    def _would_run(self, action: Action, member: Member, context: CallContext, policy: Policy) -> bool:
        asked = PolicyQuestion(
            user_id=context.user_id,
            tool_id=action.tool_id,
            tool_name=action.tool_name,
            action_name=action.name,
            effect=action.effect,
            conversation_id=context.conversation_id,
            headless=context.headless,
            fingerprint=member.fingerprints[action.name],
            arguments={**action.presets, **action.pinned},
            now=self._runtime.rulebook.now(),
        )
        question = GateQuestion(
            client_side=False,
            requires_approval=action.require_approval,
            headless=context.headless,
            allowlisted=action.tool_id in map(str, context.tool_allowlist),
            live_gate=action.live_gate,
            ruling=policy.decide(asked) if policy else None,
        )
        return isinstance(check_pause(question), Allow)

    async def _said(self, member: Member, context: CallContext) -> str:
        row, runtime = member.row, self._runtime
        assert member.tool is not None
        try:
            tool = await runtime.instances.load(member.tool, row, context.user_id)
        except LoadFailure as error:
            return _left_out(row.id, str(error))
        hook: _Hook = tool.opening  # type: ignore[attr-defined]
        run = await runtime.runner.run(
            partial(hook, self._context(row.id, context)), is_async(hook), WITHIN, _take_no_note
        )
        if isinstance(run, Broke):
            return _left_out(row.id, without_secrets(run.message, tool.config))
        said: Any = run.value
        if said is None or said == "":
            return ""
        if not isinstance(said, str):
            return _left_out(row.id, "it did not answer with a text, or None")
        if len(said) > LONGEST:
            return _left_out(row.id, f"it says {len(said)} characters; at most {LONGEST} are told")
        return foreign(said, token_hex(8)) if tool.untrusted else said

    def _context(self, tool_id: str, context: CallContext) -> ToolContext:
        """Return what a tool may know of the turn: there is no call, and nothing to write."""
        return ToolContext(
            user_id=context.user_id,
            message_id=context.message_id,
            call_id="",
            conversation_id=context.conversation_id,
            run_id=context.run_id,
            agent_id=context.agent_id,
            attachments=tuple(context.attachments),
            idempotency_key="",
            deadline=datetime.now(UTC) + timedelta(seconds=WITHIN),
            progress=ignore_progress,
            store=ReadingStore(self._runtime.log.store, tenant_column(context.user_id), tool_id),
        )


def _headed(toolset: Toolset, said: dict[str, str]) -> list[str]:
    """Return what rows said; where several of one tool did, each says which functions are its own."""
    members = [(member, said.get(member.row.id)) for member in toolset.members]
    many = Counter(member.row.name for member, text in members if text)
    names = toolset.names() if any(count > 1 for count in many.values()) else {}
    texts = []
    for member, text in members:
        if text and many[member.row.name] > 1:
            own = dict.fromkeys(name for name, (tool_id, _) in names.items() if tool_id == member.row.id)
            text = f"Of {', '.join(own)}:\n{text}"
        if text:
            texts.append(text)
    return texts


def _left_out(row_id: str, why: str) -> str:
    _log.warning("tool row %s does not say how a conversation opens: %s", row_id, why)
    return ""


def _take_no_note() -> None:
    """Asking has no effect, so nothing is kept of when it began."""
