"""A journalled call's arguments against its action as that is now, before the call goes on."""

from __future__ import annotations

from engine.concealing import arguments_to_run
from engine.credentials import CredentialsError
from engine.definition import Definition
from engine.proposal import Refusal
from engine.refusals import arguments_text
from engine.runtime import Runtime
from events.types import Proposed

__all__ = ("recheck",)


def recheck(runtime: Runtime, definition: Definition, proposed: Proposed) -> Refusal | None:
    """Return why a call cannot run as it is kept: its secrets are not to be had, or its arguments do not fit.

    :param proposed: with the arguments that would run
    """
    hidden = definition.hidden(runtime.secrets, proposed)
    if hidden is not None and hidden.problem is not None:
        return Refusal("load", hidden.problem)
    try:
        arguments = arguments_to_run(hidden, proposed)
    except CredentialsError as error:
        return Refusal("load", f"This call was allowed and could not be run: {error}.")
    problem = runtime.checker.validate(definition.action, arguments)
    return None if problem is None else Refusal("invalid_arguments", arguments_text(proposed.llm_name, problem, ()))
