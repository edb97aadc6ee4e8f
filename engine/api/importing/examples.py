"""Values that are there become arguments: their schemas, and what is sent where nobody says another value."""

from __future__ import annotations

import re
from typing import Any

import msgspec

__all__ = ("Example", "example_of", "is_placeholder", "sounds_secret")

_SECRET_ENDS = (
    "secret",
    "password",
    "passwd",
    "passphrase",
    "token",
    "apikey",
    "accesskey",
    "secretkey",
    "privatekey",
    "subscriptionkey",
    "authkey",
    "apitoken",
    "credential",
    "credentials",
    "authorization",
    "auth",
    "signature",
    "sessionid",
    "cookie",
)
_PUBLIC_ENDS = ("pagetoken", "nexttoken", "continuationtoken", "synctoken", "csrftoken", "xsrftoken")
_EXACTLY = frozenset({"key", "sid", "session", "pwd", "pass", "sig"})
_MAX_DEPTH = 30
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,14})")
_PLACEHOLDER = re.compile(r"\$\{?\w+\}?|\$\(.*\)|<[^<>]*>|\{\{[^{}]*\}\}|%\w+%", re.DOTALL)


class Example(msgspec.Struct, frozen=True):
    """A value with what it shows of its schema.

    :ivar schema: without the value
    :ivar value: without what sounds secret; None: there is none to keep
    :ivar dropped: paths of what was dropped from it
    """

    schema: dict[str, Any]
    value: Any = None
    dropped: tuple[str, ...] = ()

    @property
    def preset(self) -> dict[str, Any]:
        """The schema with the value as what is sent where a call says nothing."""
        return self.schema if self.value is None else {**self.schema, "value": self.value}


def sounds_secret(name: str) -> bool:
    """Tell whether a header, a parameter or a field of this name holds a secret, as far as its name says."""
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    if plain.endswith(_PUBLIC_ENDS):
        return False
    return plain in _EXACTLY or plain.endswith(_SECRET_ENDS)


def is_placeholder(value: str) -> bool:
    """Tell whether a value only says that one belongs there (``$TOKEN``, ``<your key>``)."""
    return _PLACEHOLDER.fullmatch(value) is not None


def example_of(name: str, value: Any, *, from_text: bool = False) -> Example:
    """Return what a value shows.

    :param from_text: texts that are written as JSON writes integers and booleans are taken for these
    """
    if _is_secret(name, value):
        return Example(_schema(value, 0), None, (name,))
    dropped: list[str] = []
    kept = _kept(name, _typed(value) if from_text else value, dropped, 0)
    return Example(_schema(kept, 0), kept, tuple(dropped))


def _is_secret(name: str, value: Any) -> bool:
    """Tell whether a value is secret as a whole: a scalar, or a list that has some, under a name that sounds so."""
    if isinstance(value, list):
        return any(_is_secret(name, item) for item in value)
    return value is not None and not isinstance(value, dict) and sounds_secret(name)


def _typed(value: Any) -> Any:
    if isinstance(value, list):
        typed = [_typed(item) for item in value]
        return typed if len({type(item) for item in typed}) == 1 else value
    if value in ("true", "false"):
        return value == "true"
    return int(value) if isinstance(value, str) and _INTEGER.fullmatch(value) and value != "-0" else value


def _kept(path: str, value: Any, dropped: list[str], depth: int) -> Any:
    if depth > _MAX_DEPTH:
        return None
    if isinstance(value, list):
        return [_kept(path, item, dropped, depth + 1) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {}
    for key, item in value.items():
        if _is_secret(key, item):
            dropped.append(f"{path}.{key}")
        else:
            kept[key] = _kept(f"{path}.{key}", item, dropped, depth + 1)
    return kept


def _schema(value: Any, depth: int) -> dict[str, Any]:
    match value:
        case bool():
            return {"type": "boolean"}
        case int():
            return {"type": "integer"}
        case float():
            return {"type": "number"}
        case str():
            return {"type": "string"}
        case dict() if depth < _MAX_DEPTH:
            return {"type": "object", "properties": {key: _schema(item, depth + 1) for key, item in value.items()}}
        case list():
            items = [_schema(item, depth + 1) for item in value]
            same = items and all(item == items[0] for item in items)
            return {"type": "array", "items": items[0]} if same else {"type": "array"}
    return {}
