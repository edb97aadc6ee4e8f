"""The preview of a result: its first characters, never half of what a reader sees as one."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

__all__ = ("MARK", "boundary", "cut_text")

MARK: Final = "..."
"""What follows a text that was cut."""

_ZWJ: Final = "\u200d"
_REGIONAL: Final = "".join(map(chr, range(0x1F1E6, 0x1F200)))
_VIRAMA: Final = 9
# Beyond the mark categories: Thai and Lao AM, joiners, halfwidth kana marks, skin tones, tags, conjoining jamo.
_EXTENDING: Final = re.compile(
    "[\u0e33\u0eb3\u200c\u200d\uff9e\uff9f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f\u1160-\u11ff\ud7b0-\ud7fb]"
)
_LEADING_JAMO: Final = re.compile("[\u1100-\u115f\ua960-\ua97c]")
_SYLLABLE: Final = re.compile("[\u1100-\u115f\ua960-\ua97c\uac00-\ud7a3]")
# Grapheme_Cluster_Break=Prepend (UAX #29): signs written before the character they belong to.
_PREPENDED: Final = re.compile(
    "[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u0d4e\U000110bd\U000110cd\U000111c2\U000111c3\U000113d1\U0001193f"
    "\U00011941\U00011a3a\U00011a84-\U00011a89\U00011d46\U00011f02]"
)


def cut_text(text: str, limit: int) -> str:
    """Return the text if it has at most ``limit`` characters, else its beginning and :data:`MARK`.

    The beginning has at most ``limit`` characters and ends between graphemes (by UAX #29, erring towards an earlier
    cut). Cutting what was cut already changes nothing: a text that is a beginning of that length and the mark stays.
    """
    if len(text) <= limit or (len(text) <= limit + len(MARK) and text.endswith(MARK)):
        return text
    return text[: boundary(text, limit)] + MARK


def boundary(text: str, limit: int) -> int:
    """Return the last place at or before ``limit`` where the text can be cut between graphemes; 0 if there is none.

    Only as much is looked at as the last grapheme is long.
    """
    place = min(limit, len(text))
    while 0 < place < len(text) and _joined(text, place):
        place -= 1
    return place


def _joined(text: str, place: int) -> bool:
    """Tell whether the characters on both sides of a place may be one grapheme."""
    before, after = text[place - 1], text[place]
    if before < "\u0300" and after < "\u0300":
        return before == "\r" and after == "\n"
    if before in "\r\n" or before < " ":
        return False
    if _extends(after) or before == _ZWJ or _PREPENDED.match(before):
        return True
    if _SYLLABLE.match(after):
        return _LEADING_JAMO.match(before) is not None
    if after in _REGIONAL and before in _REGIONAL:
        head = text[:place]
        return (len(head) - len(head.rstrip(_REGIONAL))) % 2 == 1
    return unicodedata.category(after) == "Lo" and _ends_in_virama(text, place)


def _ends_in_virama(text: str, place: int) -> bool:
    """Tell whether the marks before a place hold a virama, which joins the consonants on both sides."""
    while place and _extends(text[place - 1]):
        place -= 1
        if unicodedata.combining(text[place]) == _VIRAMA:
            return True
    return False


def _extends(character: str) -> bool:
    category = unicodedata.category(character)
    # A character that this Python's tables do not know yet may be a mark; only pictures are added beyond U+1F000.
    return category[0] == "M" or (category == "Cn" and character < "\U0001f000") or _is_joiner(character)


def _is_joiner(character: str) -> bool:
    return _EXTENDING.match(character) is not None
