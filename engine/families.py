"""Provider families: whose wire forms are spoken (DESIGN 3, Family)."""

from __future__ import annotations

from typing import Literal, TypeAlias, cast

__all__ = ("FAMILIES", "Family", "family_of")

Family: TypeAlias = Literal["openai", "openai.responses", "anthropic", "google", "mcp"]

FAMILIES: tuple[str, ...] = ("openai", "openai.chat", "openai.responses", "anthropic", "google", "mcp")
"""Names a caller may give; ``openai.chat`` is another name of ``openai``."""


def family_of(name: str) -> Family:
    """Return the family meant by ``name``; a name nobody knows follows openai's rules (BEHAVIOUR 40)."""
    if name in FAMILIES and name != "openai.chat":
        return cast(Family, name)
    return "openai"
