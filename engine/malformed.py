"""What is wrong with arguments that are no JSON, said so that a model can mend them."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from engine.journalled import journal_form

__all__ = ("Diagnosis", "diagnose", "finite", "refuse_constant")

_decode = msgspec.json.Decoder().decode
_HALF_PAIR = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")


class Diagnosis(msgspec.Struct, frozen=True):
    """What is wrong and where; or, ``problem`` None, the value, and in ``note`` what was replaced in it."""

    problem: str | None
    value: Any = None
    note: str | None = None


class _NotJson(ValueError):
    pass


def diagnose(text: str | bytes) -> Diagnosis:
    """Read JSON strictly, or say why it is none; never raises.

    The one thing let through is half of a surrogate pair (a broken emoji): no store could keep it, so it becomes
    U+FFFD, once and before anything else sees it. NaN, infinities, and numbers that become one (1e999) stay refused:
    they are no JSON.
    """
    try:
        return Diagnosis(None, _decode(text))
    except (ValueError, RecursionError):
        if isinstance(text, str):
            return _diagnosed(text)
    try:
        return _diagnosed(text.decode())
    except UnicodeDecodeError as error:
        return Diagnosis(f"they are not UTF-8 text: byte {error.start} cannot be read")


def _diagnosed(text: str) -> Diagnosis:
    try:
        value = json.loads(text, parse_constant=refuse_constant, parse_float=finite)
    except json.JSONDecodeError as error:
        return Diagnosis(f"{error.msg} at line {error.lineno}, column {error.colno} (character {error.pos})")
    except _NotJson as error:
        return Diagnosis(_placed(text, str(error)))
    except ValueError:
        return Diagnosis("a number in them has too many digits")
    except RecursionError:
        return Diagnosis("they are nested too deep")
    if _HALF_PAIR.search(text):
        return Diagnosis(None, journal_form(value), "halves of surrogate pairs were replaced by U+FFFD")
    return Diagnosis("they are not JSON as the standard has it")


def refuse_constant(name: str) -> Any:
    """Refuse NaN and the infinities, which Python's decoder would take.

    :raises ValueError: always
    """
    raise _NotJson(name)


def finite(digits: str) -> float:
    """Return a number.

    :raises ValueError: if it is too large for one (1e999)
    """
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise _NotJson(digits)
    return number


def _placed(text: str, token: str) -> str:
    # Strings are skipped whole, since they may say NaN too.
    outside = re.compile(r'"(?:[^"\\]|\\.)*"|(' + re.escape(token) + ")", re.DOTALL)
    at = next((found.start() for found in outside.finditer(text) if found.group(1)), 0)
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    shown = token if len(token) <= 40 else token[:40] + "..."
    return f"{shown} is no JSON number, at line {line}, column {column} (character {at})"
