"""What a server says of its tools, as the engine keeps it: whole, with a digest by which a change is noticed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from engine.journalled import journal_form
from engine.mcp.server import Approval
from events.keys import canonical_bytes, digest_of
from events.types import Effect

__all__ = ("Definition", "entries_of")

_COVERED: Final = ("name", "description", "inputSchema", "outputSchema", "annotations")
_NO_PARAMETERS: Final = {"type": "object", "properties": {}}


class Definition(msgspec.Struct, frozen=True):
    """One tool of a server.

    :ivar digest: SHA-256 of its name, description, schemas and annotations; the order of keys plays no part
    :ivar output: the schema of its structured results
    """

    name: str
    digest: str
    description: str
    parameters: dict[str, Any]
    output: dict[str, Any] | None
    annotations: dict[str, Any]

    @staticmethod
    def of(content: Any) -> Definition | None:
        """Read an entry of a listing; None: it is none that can be called."""
        if not isinstance(content, Mapping) or not isinstance(name := content.get("name"), str) or not name:
            return None
        stated = content.get("inputSchema")
        if stated is not None and not isinstance(stated, dict):
            return None
        covered = {key: content[key] for key in _COVERED if content.get(key) is not None}
        description, output = content.get("description"), content.get("outputSchema")
        annotations = content.get("annotations")
        return Definition(
            name,
            digest_of(canonical_bytes(journal_form(covered))),
            description if isinstance(description, str) else "",
            stated or dict(_NO_PARAMETERS),
            output if isinstance(output, dict) else None,
            annotations if isinstance(annotations, dict) else {},
        )

    @property
    def effect(self) -> Effect:
        """What its annotations say that it does; unknown: write."""
        if self.annotations.get("readOnlyHint") is True:
            return "read"
        return "destroy" if self.annotations.get("destructiveHint") is True else "write"

    @property
    def idempotent(self) -> bool:
        """Whether calling it twice is said to be as good as once."""
        return self.annotations.get("idempotentHint") is True or self.effect == "read"

    def entry(self, approval: Approval, timeout: float) -> dict[str, Any]:
        """Return it as an entry of ``get_actions_metadata``, its schemas whole."""
        metadata: dict[str, Any] = {
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
            "effect": self.effect,
            "idempotent": self.idempotent,
            "require_approval": approval == "always" or (approval == "annotations" and self.effect != "read"),
            "timeout": timeout,
            "definition": self.digest,
        }
        if self.output is not None:
            metadata["output_schema"] = self.output
        if self.annotations:
            metadata["annotations"] = self.annotations
        return metadata


def entries_of(definitions: Iterable[Definition], approval: Approval, timeout: float) -> list[dict[str, Any]]:
    """Return the metadata of a row's actions."""
    return [each.entry(approval, timeout) for each in definitions]
