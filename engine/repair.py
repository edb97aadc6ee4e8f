"""Arguments that are almost JSON, mended where there is one way to read them, and never where anything is missing."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from engine.journalled import journal_form
from engine.malformed import diagnose, finite, refuse_constant

__all__ = ("Repair", "repaired")

_FENCE = "```"
_UNFENCED = "a Markdown fence around them was left out"
_LANGUAGE = re.compile(r"[a-zA-Z0-9_-]*")
_SPACE = re.compile(r"\s*")
_TOKEN = re.compile(r'\s*("[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]:,]|[^\s"{}\[\]:,]+)', re.DOTALL)
_TRAILING = re.compile(r",\s*[}\]]")
_PUNCTUATION = frozenset("{}[]:,")
_REPEATED = 100
# The library needs a second for 200,000 characters of escaped text.
_MENDED = 20_000
_scanner = json.JSONDecoder(parse_constant=refuse_constant, parse_float=finite)
_canonical = msgspec.json.Encoder(order="sorted")


class Repair(msgspec.Struct, frozen=True):
    """The object that was meant, and what had to be mended to read it."""

    value: dict[str, Any]
    note: str


def repaired(text: str) -> Repair | None:
    """Return what the text means if only one reading is possible, else None; never raises.

    Mended are: an object encoded twice, one object several times in a row (``{}{}``), commas before a closing
    bracket (in up to 20,000 characters), and a Markdown fence around any of these. Text that breaks off is never
    completed, and nothing that was said is changed.
    """
    try:
        body = _unfenced(text)
        if body is None:
            return _encoded_twice(text) or _repeated(text) or _without_trailing_commas(text)
        if isinstance(value := diagnose(body).value, dict):
            return Repair(value, _UNFENCED)
        inner = _repeated(body) or _without_trailing_commas(body)
    except (ValueError, RecursionError):
        return None
    return None if inner is None else Repair(inner.value, f"{_UNFENCED}; {inner.note}")


def _unfenced(text: str) -> str | None:
    text = text.strip()
    if len(text) < 2 * len(_FENCE) or not text.startswith(_FENCE) or not text.endswith(_FENCE):
        return None
    inside = text[len(_FENCE) : -len(_FENCE)]
    language = _LANGUAGE.match(inside)
    return inside[language.end() :] if language else inside


def _encoded_twice(text: str) -> Repair | None:
    once = diagnose(text).value
    value = diagnose(once).value if isinstance(once, str) else None
    return Repair(value, "they were encoded as JSON twice") if isinstance(value, dict) else None


def _repeated(text: str) -> Repair | None:
    """Read one object that comes several times in a row. Different objects in a row have no certain reading."""
    value: Any = None
    first: bytes | None = None
    count = at = 0
    end = len(text.rstrip())
    while at < end:
        space = _SPACE.match(text, at)
        try:
            value, at = _scanner.raw_decode(text, space.end() if space else at)
            encoded = _canonical.encode(value)
        except ValueError:
            return None
        if not isinstance(value, dict) or encoded != (first or encoded) or count == _REPEATED:
            return None
        first, count = encoded, count + 1
    return Repair(value, f"the same object came {count} times") if count > 1 else None


def _without_trailing_commas(text: str) -> Repair | None:
    """Let a library mend the text; believe it only if it took away commas before a closing bracket and no more."""
    if len(text) > _MENDED or not _TRAILING.search(text) or (said := _said(text)) is None:
        return None
    # Loaded here: few calls need it.
    import json_repair

    value = json_repair.loads(text, skip_json_loads=True)
    if not isinstance(value, dict) or _said(json.dumps(value, ensure_ascii=False)) != said:
        return None
    return Repair(journal_form(value), "commas before a closing bracket were left out")


def _said(text: str) -> list[Any] | None:
    """Return the text's tokens, without each comma between a value and a closing bracket; None if it has others.

    Scalars come decoded, and with their type, since 1 equals true.
    """
    tokens: list[Any] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        found = _TOKEN.match(text, at)
        if found is None:
            return None
        token, at = found[1], found.end()
        if token in ("}", "]") and len(tokens) > 1 and tokens[-1] == "," and tokens[-2] not in ("{", "[", ",", ":"):
            tokens.pop()
        if token in _PUNCTUATION:
            tokens.append(token)
        elif (scalar := diagnose(token)).problem is None:
            tokens.append((type(scalar.value), scalar.value))
        else:
            return None
    return tokens
