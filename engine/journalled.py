"""The form in which JSON content is journalled: what every database stores and reads back alike (BEHAVIOUR 113-115)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime, time
from enum import Enum
from pathlib import PurePath
from typing import Any

import msgspec

__all__ = ("MAX_DEPTH", "journal_form")

MAX_DEPTH = 200
"""Levels of nesting that are kept; deeper content (and content that contains itself) becomes ``TOO_DEEP``."""

TOO_DEEP = "(nested too deep)"
_PLAIN: frozenset[type] = frozenset({int, bool, type(None)})


def journal_form(value: Any) -> Any:
    """Return JSON content as it is journalled, shown, approved and run; never raises, never changes ``value``.

    NUL is dropped from strings and keys, other control characters stay; half of a surrogate pair becomes U+FFFD; UUID
    becomes text, datetime ISO text, Decimal its digits as text, bytes base64; NaN and the infinities become null; a
    key that is no string becomes one; what has no JSON form becomes its type's name in angle brackets. Content that
    needs no change is returned as it is: the same object.
    """
    return _form(value, 0)


def _form(value: Any, depth: int) -> Any:
    kind = type(value)
    if kind is str:
        return _text(value)
    if kind in _PLAIN:
        return value
    if kind is float:
        return value if math.isfinite(value) else None
    if depth >= MAX_DEPTH:
        return TOO_DEEP
    if kind is dict:
        return _object(value, depth + 1)
    if kind is list:
        return _array(value, depth + 1)
    return _foreign(value, depth)


def _text(text: str) -> str:
    if "\x00" in text:
        text = text.replace("\x00", "")
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        # The detour joins halves that make a pair and replaces those that do not.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _object(value: dict[Any, Any], depth: int) -> dict[str, Any]:
    formed: dict[str, Any] = {}
    changed = False
    for key, item in value.items():
        name = _text(key) if type(key) is str else _key(key)
        kept = _form(item, depth)
        if name is not key or kept is not item:
            changed = True
        formed[name] = kept
    return formed if changed else value


def _array(value: list[Any], depth: int) -> list[Any]:
    formed = [_form(item, depth) for item in value]
    for before, after in zip(value, formed, strict=True):
        if before is not after:
            return formed
    return value


def _key(key: Any) -> str:
    form = _form(key, MAX_DEPTH - 1)
    return form if isinstance(form, str) else msgspec.json.encode(form).decode()


def _foreign(value: Any, depth: int) -> Any:
    match value:
        case Enum():
            return _form(value.value, depth + 1)
        case bool() | str() | int() | float():
            return _form(_builtin(value), depth)
        case Mapping():
            return _object(dict(value), depth + 1)
        case list() | tuple():
            return _array(list(value), depth + 1)
        case set() | frozenset():
            return sorted(_array(list(value), depth + 1), key=msgspec.json.encode)
        case datetime() | date() | time():
            return value.isoformat()
        case PurePath():
            return _text(str(value))
    return _converted(value, depth)


def _builtin(value: Any) -> str | int | float:
    """Return the plain value behind an instance of a subclass of a JSON type."""
    if isinstance(value, str):
        return str.__str__(value)
    return int(value) if isinstance(value, int) else float(value)


def _converted(value: Any, depth: int) -> Any:
    try:
        plain = msgspec.to_builtins(value, builtin_types=(datetime, date, time), enc_hook=_unknown)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return _unknown(value)
    return _form(plain, depth + 1)


def _unknown(value: Any) -> str:
    return f"<{type(value).__name__}>"
