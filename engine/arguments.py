"""A call's arguments against its action: checked, filled in, and sorted to where they go (BEHAVIOUR 75-81)."""

from __future__ import annotations

from typing import Any

import msgspec

from engine.actions import Action
from engine.journalled import MAX_DEPTH, TOO_DEEP, journal_form
from engine.refusals import not_an_object, quoted
from engine.validation import Validators

__all__ = ("ArgumentChecker", "Resolved", "journal_form", "sort_arguments")


class Resolved(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Arguments as they go out.

    :ivar kwargs: what the tool's action receives: an action's own parameters, of a request its body
    """

    query_params: dict[str, Any] = {}
    headers: dict[str, Any] = {}
    body: dict[str, Any] = {}
    parameters: dict[str, Any] = {}
    kwargs: dict[str, Any] = {}
    is_request: bool = False

    def buckets(self) -> dict[str, Any]:
        """Return what the journal keeps: the three parts of a request, else the action's parameters."""
        if not self.is_request:
            return {"parameters": self.parameters}
        own = {"parameters": self.parameters} if self.parameters else {}
        return {"query_params": self.query_params, "headers": self.headers, "body": self.body, **own}


class ArgumentChecker:
    """Checks arguments; keeps the compiled schemas of the actions it has met."""

    def __init__(self) -> None:
        self._validators = Validators()

    def validate(self, action: Action, arguments: Any) -> str | None:
        """Return what is wrong with the arguments, as a text for the model that names each parameter, or None.

        Nothing is coerced. Names that are hidden from the model may not be sent; of a request, names that none of its
        parts has neither.
        """
        if arguments == TOO_DEEP:
            return f"The arguments of {quoted(action.name)} are nested more than {MAX_DEPTH} levels deep."
        if not isinstance(arguments, dict):
            return not_an_object(action.name, arguments)
        if not action.hidden.isdisjoint(arguments):
            return _forbidden(action, [name for name in arguments if name in action.hidden])
        if action.groups:
            unknown = [name for name in arguments if not any(name in group.visible for group in action.groups)]
            if unknown:
                return _unknown(action, unknown)
        return self._validators.problem(action, arguments)


def sort_arguments(action: Action, arguments: dict[str, Any]) -> Resolved:
    """Return the arguments with presets where the model sent nothing, pinned values always, and each where it belongs.

    A preset of 0, false or empty text counts; a value the owner never set is not sent. A name that several groups of
    a request declare is set in each. ``arguments`` is not changed.
    """
    if not action.groups:
        kwargs = {**action.presets, **arguments, **action.pinned}
        return Resolved(parameters=kwargs, kwargs=kwargs)
    parts: dict[str, dict[str, Any]] = {}
    for group in action.groups:
        sent = {name: arguments[name] for name in group.visible if name in arguments}
        parts[group.name] = {**group.presets, **sent, **group.pinned}
    own = parts.get("parameters", {})
    return Resolved(**parts, kwargs={**own, **parts.get("body", {})}, is_request=True)


def _forbidden(action: Action, names: list[str]) -> str:
    listed = ", ".join(quoted(name) for name in names[:5])
    which = f"parameter {listed}" if len(names) == 1 else f"parameters {listed}"
    return f"The arguments of {quoted(action.name)} are not valid: {which} cannot be set by a call. Leave it out."


def _unknown(action: Action, names: list[str]) -> str:
    listed = ", ".join(quoted(name) for name in names[:5])
    return f"The arguments of {quoted(action.name)} are not valid: it has no parameter {listed}. Leave it out."
