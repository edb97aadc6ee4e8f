"""A curl command as a shell would split it, for what people paste: quotes, ``$'…'``, lines that end in a backslash."""

from __future__ import annotations

import re
import shlex

from events.errors import Refused

__all__ = ("curl_words",)

_LARGEST = 1024 * 1024
_ANSI = re.compile(r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|(.))", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "e": "\x1b", "E": "\x1b"}
_PART = re.compile(
    r"""\$'(?P<ansi>(?:[^'\\]|\\.)*)'|'[^']*'|"(?P<double>(?:[^"\\]|\\.)*)"|(?P<end>\\\r?\n)|\\.""", re.DOTALL
)
_OPERATOR = re.compile(r"[|&;<>`()\n]")


def curl_words(text: str) -> list[str]:
    """Return the words of one curl command, without the first, which is ``curl``. Nothing is expanded or run.

    :raises Refused: if it is empty, no curl command, more than one command, or has a quote that is never closed
    """
    if len(text) > _LARGEST:
        raise Refused(f"The command is longer than {_LARGEST // 2**20} MiB.")
    text = text.strip().removeprefix("$ ")
    if found := _OPERATOR.search(_PART.sub("", text)):
        what = "a line's end" if found[0] == "\n" else found[0]
        raise Refused(f"The command has {what} outside quotes: give one curl command, with its URL in quotes.")
    try:
        words = shlex.split(_PART.sub(_plain, text))
    except ValueError:
        raise Refused("The command has a quote that is never closed.") from None
    if not words:
        raise Refused("The command is empty.")
    if words[0].rpartition("/")[2] not in ("curl", "curl.exe"):
        raise Refused("The command is no curl command: it must begin with curl.")
    return words[1:]


def _plain(found: re.Match[str]) -> str:
    """Return a quoted part as the simplest of shells would write it; nothing for a line's end after a backslash."""
    if (ansi := found["ansi"]) is not None:
        return shlex.quote(_ANSI.sub(_character, ansi))
    if (double := found["double"]) is not None:
        return shlex.quote(re.sub(r'\\(?:\n|([$`"\\]))', lambda escape: escape[1] or "", double))
    return "" if found["end"] is not None else found[0]


def _character(found: re.Match[str]) -> str:
    for digits, radix in ((found[1], 16), (found[2], 16), (found[3], 16), (found[4], 8)):
        if digits is not None:
            code = int(digits, radix)
            return chr(code) if code <= 0x10FFFF else "\ufffd"
    return _LETTERS.get(found[5], found[5])
