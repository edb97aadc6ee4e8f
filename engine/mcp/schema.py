"""Structured results against their tools' output schemas."""

from __future__ import annotations

from typing import Any

__all__ = ("OutputSchemas",)

_CUT = 500


class OutputSchemas:
    """Compiles each tool's output schema once, and again when it is another object."""

    def __init__(self) -> None:
        self._compiled: dict[str, tuple[dict[str, Any], Any]] = {}

    def problem(self, name: str, schema: dict[str, Any] | None, value: Any) -> str | None:
        """Return what is wrong with a tool's structured result; None: nothing, or nothing is known.

        A schema that is not valid, or refers elsewhere, says nothing.
        """
        if schema is None:
            return None
        known = self._compiled.get(name)
        if known is None or known[0] is not schema:
            known = self._compiled[name] = (schema, _compiled(schema))
        validator = known[1]
        if validator is None or validator.is_valid(value):
            return None
        fault = next(iter(validator.iter_errors(value)))
        return str(fault.message)[:_CUT]


def _compiled(schema: dict[str, Any]) -> Any:
    import jsonschema_rs

    try:
        return jsonschema_rs.validator_for(schema, retriever=_refuse, mask="the value")
    except ValueError:
        return None


def _refuse(_: str) -> Any:
    raise ValueError("schemas elsewhere are not fetched")
