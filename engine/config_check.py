"""A row's configuration against what its tool wants: secrets taken out of it, everything wrong said at once.

An entry of ``get_config_requirements`` may say ``type`` (string, number, integer, boolean, array, object),
``required``, ``secret``, ``enum``, ``minimum``, ``maximum``, ``default``, and ``depends_on``: ``{key: value}``, or a
list of values, under which alone it is required. An entry ``"*"`` speaks of every key that has none of its own; without
it, such a key is refused. ``timeout`` is a number of seconds from 1 to 300 unless its entry says otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from math import isfinite
from typing import Any, Final

from engine.opened_rows import CREDENTIALS, LEGACY
from events.errors import Refused

__all__ = ("ANY", "check_config", "missing_keys", "without_secret_values")

ANY: Final = "*"
"""The entry of requirements that speaks of keys without one."""

_RESERVED: Final = frozenset({CREDENTIALS, LEGACY})
_SECRET_NAME: Final = re.compile(r"authoriz|cookie|token|secret|passw|credential|api.?key|private.?key", re.IGNORECASE)
_TIMEOUT: Final = (1, 300)
_LISTED: Final = 30
_WORDS: Final = {
    "string": "a text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
}


def without_secret_values(
    requirements: dict[str, Any], config: dict[str, Any], credentials: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a configuration without what must be sealed, and the credentials with it; keys without a value are left.

    :param credentials: secrets given as such; they go before those within the configuration
    """
    plain: dict[str, Any] = {}
    sealed: dict[str, Any] = {}
    for key, value in config.items():
        if value is not None:
            (sealed if _entry(requirements, key).get("secret") is True else plain)[key] = value
    return plain, {**sealed, **credentials}


def check_config(
    tool: str,
    requirements: dict[str, Any],
    config: dict[str, Any],
    credentials: dict[str, Any],
    *,
    known: Collection[str] = (),
) -> None:
    """Refuse a configuration that its tool cannot be used with; no value is quoted, for any may be secret.

    :param credentials: the row's secrets as they would be, those that are stored already included
    :param known: keys that need no entry
    :raises Refused: if anything is wrong; the text says all of it
    """
    given = {**config, **credentials}
    problems = [*_of_keys(requirements, given, known), *_missing_texts(requirements, given)]
    for key, value in given.items():
        if key not in _RESERVED and (entry := _entry(requirements, key)):
            problems += _of_value(key, value, entry)
            if key not in credentials and entry.get("type") == "object":
                problems += _bare_secrets(key, value)
    if problems:
        raise Refused(f"this configuration of {tool!r} cannot be used: {'; '.join(problems)}")


def _entry(requirements: Mapping[str, Any], key: str) -> dict[str, Any]:
    entry = requirements.get(key, requirements.get(ANY))
    return entry if isinstance(entry, dict) else {}


def _of_keys(requirements: dict[str, Any], given: dict[str, Any], known: Collection[str]) -> Iterator[str]:
    listed = sorted({*requirements, *known} - {ANY})
    more = f", and {len(listed) - _LISTED} more" if len(listed) > _LISTED else ""
    for key in given:
        if key in _RESERVED or not key:
            yield f"{key!r} cannot be a key of a configuration"
        elif ANY not in requirements and key not in requirements and key not in known:
            there = f"known: {', '.join(listed[:_LISTED])}{more}" if listed else "it takes none"
            yield f"{key!r} is unknown ({there})"


def missing_keys(requirements: dict[str, Any], config: dict[str, Any]) -> list[str]:
    """Return the keys that a configuration lacks, as far as what it says makes them required."""
    return [
        key
        for key, entry in requirements.items()
        if isinstance(entry, dict)
        and entry.get("required")
        and entry.get("default") is None
        and key != ANY
        and config.get(key) in (None, "")
        and _is_open(requirements, entry, config)
    ]


def _missing_texts(requirements: dict[str, Any], given: dict[str, Any]) -> Iterator[str]:
    for key in missing_keys(requirements, given):
        entry = requirements[key]
        gates = entry.get("depends_on")
        because = f" where {_gates_text(gates)}" if isinstance(gates, dict) and gates else ""
        yield f"{key!r} is required{because}{' (a secret)' if entry.get('secret') else ''}"


def _is_open(requirements: dict[str, Any], entry: dict[str, Any], given: dict[str, Any]) -> bool:
    gates = entry.get("depends_on")
    if not isinstance(gates, dict):
        return True
    for key, wanted in gates.items():
        value = given.get(key)
        value = _entry(requirements, key).get("default") if value is None else value
        if value not in (wanted if isinstance(wanted, list) else [wanted]):
            return False
    return True


def _gates_text(gates: dict[str, Any]) -> str:
    parts = (f"{key} is {_or(wanted if isinstance(wanted, list) else [wanted])}" for key, wanted in gates.items())
    return " and ".join(parts)


def _or(values: list[Any]) -> str:
    return " or ".join(map(str, values))


def _of_value(key: str, value: Any, entry: dict[str, Any]) -> Iterator[str]:
    stated = entry.get("type")
    kinds = [kind for kind in (stated if isinstance(stated, list) else [stated]) if kind in _WORDS]
    if key == "timeout" and not kinds:
        kinds = ["number"]
    if kinds and not any(_is_of(value, kind) for kind in kinds):
        yield f"{key!r} must be {_or([_WORDS[kind] for kind in kinds])}"
        return
    allowed = entry.get("enum")
    if isinstance(allowed, list) and value not in allowed:
        yield f"{key!r} must be {_or(allowed)}"
    if _is_of(value, "number"):
        yield from _of_range(key, value, entry)


def _bare_secrets(key: str, value: Any) -> Iterator[str]:
    """Yield what is wrong with texts, e.g. of headers, that would be kept for all to see who use the row."""
    for name, text in value.items() if isinstance(value, dict) else ():
        if isinstance(text, str) and _SECRET_NAME.search(str(name)):
            yield f"{key!r} has {name!r}, which sounds like a secret: give {key!r} as one of the secrets"


def _of_range(key: str, value: Any, entry: dict[str, Any]) -> Iterator[str]:
    least, most = _TIMEOUT if key == "timeout" else (None, None)
    least, most = entry.get("minimum", least), entry.get("maximum", most)
    if (least is not None and value < least) or (most is not None and value > most):
        ends = [f"at least {least}" if least is not None else "", f"at most {most}" if most is not None else ""]
        yield f"{key!r} must be {' and '.join(filter(None, ends))}"


def _is_of(value: Any, kind: str) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)
        case "array":
            return isinstance(value, list | tuple)
        case _:
            return isinstance(value, dict)
