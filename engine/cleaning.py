"""What is taken out of text before it is kept: control characters, and halves of surrogate pairs."""

from __future__ import annotations

import re
from typing import Final

import msgspec

__all__ = ("RESULT_TEXT", "STORABLE_TEXT", "WHOLE_TEXT", "TextRule", "mended")

_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_HALVES: Final = re.compile("[\ud800-\udfff]+")

_SHORT: Final = 1000
_CACHED: Final = 24 * 1024
"""Characters that are looked through again and again while they are in the processor's first cache."""


class TextRule(msgspec.Struct, frozen=True):
    """Which characters text loses; half of a surrogate pair becomes U+FFFD under every rule.

    :ivar removed: the characters taken out, one by one
    :ivar escape: what one of them looks like in encoded JSON; None where none is escaped
    """

    removed: str
    escape: re.Pattern[bytes] | None

    def clean(self, text: str) -> str:
        """Return the text without what this rule removes; clean text is returned as the same object."""
        text = self.without_removed(text)
        return mended(text) if not text.isascii() and _has_surrogate(text) else text

    def without_removed(self, text: str) -> str:
        """Do the same, but leave halves of surrogate pairs alone: for what is encoded next, where they show."""
        found = self._found(text)
        if not found:
            return text
        if text.isascii():
            # Bytes lose a character in a fifth of the time that text takes.
            data = text.encode()
            for character in found:
                data = data.replace(character.encode(), b"")
            return data.decode()
        for character in found:
            text = text.replace(character, "")
        return text

    def _found(self, text: str) -> list[str]:
        if len(text) <= _CACHED:
            if len(text) <= _SHORT and text.isprintable():
                return []
            return [character for character in self.removed if character in text]
        parts = [(start, start + _CACHED) for start in range(0, len(text), _CACHED)]
        found = {each for start, end in parts for part in (text[start:end],) for each in self.removed if each in part}
        return sorted(found)

    def touches(self, encoded: bytes) -> bool:
        """Tell whether JSON that msgspec encoded holds, in a string or a key, a character this rule removes."""
        if self.escape is None:
            return False
        if "\x7f" in self.removed and b"\x7f" in encoded:
            return True
        # One byte is found many times faster than a pattern, and most JSON has no escape at all.
        if b"\\" not in encoded or not self.escape.search(encoded):
            return False
        # It may have been the tail of an escaped backslash: look again without those.
        return self.escape.search(encoded.replace(rb"\\", b"")) is not None


def _has_surrogate(text: str) -> bool:
    """Find by encoding, in pieces: a regular expression takes ten times as long, one piece doubles the memory."""
    try:
        for start in range(0, len(text), 1 << 20):
            text[start : start + (1 << 20)].encode()
    except UnicodeEncodeError:
        return True
    return False


def mended(text: str) -> str:
    """Join surrogate pairs into the characters they stand for and replace single halves by U+FFFD."""
    joined = _PAIR.sub(lambda pair: pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le"), text)
    return _HALVES.sub(lambda halves: "\N{REPLACEMENT CHARACTER}" * len(halves[0]), joined)


WHOLE_TEXT: Final = TextRule("", None)
"""Keeps every character."""

STORABLE_TEXT: Final = TextRule("\x00", re.compile(rb"\\u0000"))
"""For arguments: NUL goes, which no database stores as text; other control characters stay (BEHAVIOUR 113, 114)."""

RESULT_TEXT: Final = TextRule("".join(map(chr, [*range(9), 11, 12, *range(14, 32), 127])), re.compile(rb"\\[ubf]"))
"""For results: control characters other than tab, line feed and carriage return go (BEHAVIOUR 125). C1 stays: U+0085 is
a line break in real text."""
