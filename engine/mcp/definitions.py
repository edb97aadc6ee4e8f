"""What a server says of its tools, as the engine keeps it: whole, with a digest by which a change is noticed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from engine.journalled import journal_form
from engine.mcp.server import Approval
from events.keys import canonical_bytes, digest_of
from events.types import Effect

__all__ = ("Definition", "metadata_of")

_COVERED: Final = ("name", "description", "inputSchema", "outputSchema", "annotations")
_NO_PARAMETERS: Final = {"type": "object", "properties": {}}
_KEPT: Final = (("title", "title"), ("outputSchema", "output_schema"), ("annotations", "annotations"))


class Definition(msgspec.Struct, frozen=True):
    """One tool of a server.

    :ivar digest: SHA-256 of its name, description, schemas and annotations; the order of keys plays no part
    :ivar content: all of it, as the server says it
    """

    name: str
    digest: str
    content: dict[str, Any]

    @staticmethod
    def of(content: Any) -> Definition | None:
        """Read an entry of a listing; None: it is none that can be called."""
        if not isinstance(content, dict) or not isinstance(name := content.get("name"), str) or not name:
            return None
        if not isinstance(content.get("inputSchema", _NO_PARAMETERS), dict):
            return None
        covered = {key: content[key] for key in _COVERED if content.get(key) is not None}
        return Definition(name, digest_of(canonical_bytes(journal_form(covered))), content)

    @property
    def output_schema(self) -> dict[str, Any] | None:
        """The schema of its structured results."""
        stated = self.content.get("outputSchema")
        return stated if isinstance(stated, dict) else None

    @property
    def effect(self) -> Effect:
        """What its annotations say that it does; unknown: write."""
        if self._says("readOnlyHint"):
            return "read"
        return "destroy" if self._says("destructiveHint") else "write"

    @property
    def idempotent(self) -> bool:
        """Whether calling it twice is said to be as good as once."""
        return self._says("idempotentHint") or self._says("readOnlyHint")

    def _says(self, hint: str) -> bool:
        annotations = self.content.get("annotations")
        return isinstance(annotations, dict) and annotations.get(hint) is True

    def metadata(self, approval: Approval, timeout: float) -> dict[str, Any]:
        """Return it as an entry of ``get_actions_metadata``, its schemas whole."""
        description = self.content.get("description")
        metadata: dict[str, Any] = {
            "name": self.name,
            "description": description if isinstance(description, str) else "",
            "parameters": self.content.get("inputSchema") or dict(_NO_PARAMETERS),
            "effect": self.effect,
            "idempotent": self.idempotent,
            "require_approval": approval == "always" or (approval == "annotations" and self.effect != "read"),
            "timeout": timeout,
            "definition": self.digest,
        }
        for theirs, ours in _KEPT:
            if self.content.get(theirs) is not None:
                metadata[ours] = self.content[theirs]
        return metadata


def metadata_of(definitions: Iterable[Definition], approval: Approval, timeout: float) -> list[dict[str, Any]]:
    """Return the metadata of a row's actions."""
    return [each.metadata(approval, timeout) for each in definitions]
