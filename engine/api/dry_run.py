"""Dry runs: the exact request that a call would make, its credentials masked; nothing is sent."""

from __future__ import annotations

from typing import Any

from engine.actions import resolve_actions
from engine.api.operation import Operation
from engine.api.preview import Preview
from engine.api.request import Arguments, build
from engine.arguments import ArgumentChecker, journal_form, sort_arguments
from engine.refusals import quoted
from engine.request_settings import request_settings
from engine.rows import ToolRow
from engine.tools.api_tool import ApiTool
from events.errors import Refused

__all__ = ("dry_run",)


def dry_run(row: ToolRow, action_name: str, arguments: dict[str, Any]) -> Preview:
    """Return the request that calling an action of an api_tool's row with these arguments would send.

    The row's credentials are neither needed nor looked at; an idempotency key shows as ``(the call's)``.

    :raises Refused: if there is no such action, or the call would be refused
    """
    actions = {action.name: action for action in resolve_actions(row, ApiTool, None)}
    action = actions.get(action_name)
    if action is None:
        listed = ", ".join(sorted(actions)[:30]) or "(none)"
        raise Refused(f"The tool has no action {quoted(action_name)}. There is: {listed}.")
    formed = journal_form(arguments)
    problem = ArgumentChecker().validate(action, formed)
    if problem is not None:
        raise Refused(problem)
    resolved = sort_arguments(action, formed)
    operation = Operation.of(request_settings(row, action, resolved))
    groups = Arguments(query_params=resolved.query_params, headers=resolved.headers, body=resolved.kwargs)
    return build(operation, groups, "(the call's)").preview()
