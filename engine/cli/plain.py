"""Text that came from elsewhere (models, tools, files), fit for a terminal."""

from __future__ import annotations

import re
from typing import Any, Final

from events.codec import encode_json

__all__ = ("json_text", "one_line", "visible")

# Control characters, line separators, and what reverses the direction of writing: a terminal would obey them.
_UNSAFE: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    """Return text whose control characters are shown instead of obeyed; tabs and line ends stay."""
    return _UNSAFE.sub(lambda match: match.group().encode("unicode_escape", "surrogatepass").decode(), text)


def one_line(text: str) -> str:
    """Return text as one visible line."""
    return visible(" ".join(text.split()))


def json_text(content: Any) -> str:
    """Return JSON content as one visible line."""
    return one_line(encode_json(content).decode())
