"""Values as they stand in URLs, headers and forms: the text of a scalar, JSON for what is no scalar."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from events.codec import encode_json

__all__ = ("items_of", "json_text", "text_of")


def text_of(value: Any) -> str:
    """Return a value's text: a string itself, true and false in JSON's spelling, what is no scalar as JSON."""
    return value if isinstance(value, str) else json_text(value)


def json_text(value: Any) -> str:
    """Return compact JSON text, beyond ASCII as it is."""
    return encode_json(value).decode()


def items_of(value: list[Any] | dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the (key, text) of what a list or an object holds, nulls left out; a list's keys are ""."""
    pairs = value.items() if isinstance(value, dict) else [("", item) for item in value]
    for key, item in pairs:
        if item is not None:
            yield key, text_of(item)
