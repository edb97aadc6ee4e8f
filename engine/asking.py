"""Asking a tool itself, at the moment of the call, whether a person must approve it (DESIGN 6, Gate)."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from engine.actions import Action
from engine.arguments import sort_arguments
from engine.concealing import Concealing, arguments_to_run
from engine.contract import AskAgain
from engine.credentials import CredentialsError
from engine.gate import LiveAnswer
from engine.loading import LoadFailure
from engine.running import Broke
from engine.runtime import Runtime
from engine.toolset import Member
from events.types import Proposed

__all__ = ("ask_tool",)


async def ask_tool(
    runtime: Runtime, action: Action, member: Member, proposed: Proposed, hidden: Concealing | None
) -> LiveAnswer:
    """Return what a live-gated tool says of one call, by its ``preview_decision(action_name, arguments)``.

    It is shown what its action would receive: a copy, so that nothing it does to that is ever run. Failing to load,
    raising, taking longer than ``Limits.ask`` and answering anything but two booleans are a failure to ask. A
    cancellation passes through.
    """
    assert member.tool is not None
    try:
        arguments = arguments_to_run(hidden, proposed)
        tool = await runtime.instances.load(member.tool, member.row, proposed.user_id)
    except (LoadFailure, CredentialsError):
        return _failure("could not be loaded")
    preview: Callable[..., Any] | None = getattr(tool, "preview_decision", None)
    if preview is None:
        return _failure("has no preview_decision")
    shown = copy.deepcopy(sort_arguments(action, arguments).kwargs)
    seconds = runtime.settings.limits.ask
    call = partial(preview, action.name, shown)
    run = await runtime.runner.run(call, inspect.iscoroutinefunction(preview), seconds, _take_no_note)
    if isinstance(run, Broke):
        if isinstance(run.error, AskAgain):
            return LiveAnswer(True, failure=str(run.error))
        # Never what it raised: that may quote what only the tool should know.
        return _failure(f"did not answer within {seconds:g} s" if run.kind == "timeout" else "failed to answer")
    return _answer(run.value)


def _answer(said: object) -> LiveAnswer:
    match said:
        case (bool() as needs_approval, bool() as denylisted):
            return LiveAnswer(needs_approval or denylisted, denylisted)
        case _:
            return _failure("did not answer with two booleans")


def _failure(what: str) -> LiveAnswer:
    return LiveAnswer(True, failure=f"its tool {what} when asked whether it may run")


def _take_no_note() -> None:
    """Asking has no effect, so nothing is kept of when it began."""
