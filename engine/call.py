"""Provider payloads become typed calls."""

from __future__ import annotations

from typing import Any

import msgspec

__all__ = ("ToolCall",)


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call as the model made it: ``arguments`` as sent (JSON text, bytes, an object, or None).

    ``extra`` keeps what must go back to the provider unchanged, e.g. Google's thought signature.
    """

    id: str | None = None
    name: str | None = None
    arguments: Any = None
    extra: dict[str, Any] = {}
