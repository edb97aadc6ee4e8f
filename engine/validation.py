"""Arguments against an action's JSON Schema, by a compiled validator that is kept per action."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, cast

from engine.actions import Action
from engine.journalled import journal_form
from engine.refusals import kind_of_json, quoted

__all__ = ("Validators",)

_LISTED = 5
_KEPT = 4096
_MASK = "the value"


class _Fault(Protocol):
    @property
    def message(self) -> str: ...
    @property
    def instance_path(self) -> list[str | int]: ...
    @property
    def instance(self) -> Any: ...


class _Validator(Protocol):
    def is_valid(self, instance: Any) -> bool: ...
    def iter_errors(self, instance: Any) -> Iterable[_Fault]: ...


class Validators:
    """Compiles each action's schema once, and again only when the schema is another object."""

    def __init__(self) -> None:
        self._compiled: dict[tuple[str, str], tuple[dict[str, Any], _Validator | str]] = {}

    def problem(self, action: Action, sent: dict[str, Any]) -> str | None:
        """Return what is wrong with the arguments, each fault with its path and what was expected, or None.

        Presets and pinned values count as given, so that the schema speaks of what the tool will receive. A schema
        that cannot be compiled is the tool's fault, and the text says so.
        """
        validator = self._validator(action)
        if isinstance(validator, str):
            return (
                f"The tool {quoted(action.name)} cannot be called: its parameter schema is not valid ({validator}). "
                "Its owner must mend it; other arguments will not help."
            )
        arguments = {**action.presets, **sent, **action.pinned} if action.presets or action.pinned else sent
        try:
            valid, checked = validator.is_valid(arguments), arguments
        except ValueError:
            # Values that JSON lacks (UUID, bytes, …) are judged as they are journalled.
            checked = journal_form(arguments)
            valid = validator.is_valid(checked)
        return None if valid else _text(action, sent, list(validator.iter_errors(checked)))

    def _validator(self, action: Action) -> _Validator | str:
        key = (action.tool_id, action.name)
        known = self._compiled.get(key)
        if known is not None and known[0] is action.parameters:
            return known[1]
        compiled = _compile(action.parameters)
        self._compiled.pop(key, None)
        while len(self._compiled) >= _KEPT:
            del self._compiled[next(iter(self._compiled))]
        self._compiled[key] = (action.parameters, compiled)
        return compiled


def _compile(schema: dict[str, Any]) -> _Validator | str:
    # Loaded here, since few who import the engine validate anything.
    import jsonschema_rs

    try:
        return cast("_Validator", jsonschema_rs.validator_for(schema, retriever=_refuse, mask=_MASK))
    except ValueError as error:
        if "$schema" in schema and "meta-schema" in str(error):
            return _compile({key: content for key, content in schema.items() if key != "$schema"})
        return _cut(str(error))


def _refuse(uri: str) -> Any:
    raise ValueError(f"schemas elsewhere are not fetched: {uri}")


def _text(action: Action, sent: dict[str, Any], faults: list[_Fault]) -> str:
    listed = "; ".join(_fault(fault, sent) for fault in faults[:_LISTED])
    more = f"; and {len(faults) - _LISTED} more" if len(faults) > _LISTED else ""
    return f"The arguments of {quoted(action.name)} are not valid: {listed}{more}."


def _fault(fault: _Fault, sent: dict[str, Any]) -> str:
    path = fault.instance_path
    if not path:
        return _cut(fault.message)
    # What nobody sent, the owner set: no other arguments will mend it.
    origin = (
        f"{kind_of_json(fault.instance)} was sent" if path[0] in sent else "set by the tool's owner, who must mend it"
    )
    return f"{quoted(_dotted(path))}: {_cut(fault.message)} ({origin})"


def _dotted(path: list[str | int]) -> str:
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(steps).removeprefix(".")


def _cut(text: str) -> str:
    line = text.partition("\n")[0]
    return line if len(line) <= 200 else line[:200] + "..."
