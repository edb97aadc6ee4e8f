"""The JSON form of anything a tool can return.

===========================  ==========================================================================================
value                        JSON
===========================  ==========================================================================================
NaN, infinities              null (JSON has no such numbers)
integers                     exact, whatever their size
datetime, date, time         ISO 8601; UTC as ``Z``; a timedelta as an ISO 8601 duration
Decimal, UUID, Path          their text
bytes and their kin          base64
Enum                         its value's form
dataclass, Struct, attrs     an object of its fields
Pydantic model               an object of its fields (``model_dump``)
mapping                      an object; keys that are not text become text: an Enum's value, otherwise the JSON form
                             (``1``, ``true``, ``null``, ``2024-05-01``); a key that is taken gets ``#2``, ``#3``
set, frozenset               a list, sorted where its members can be sorted
tuple, sequence, view        a list
iterator, generator, iterable a list of at most 100,000 items, then ``{"truncated": true, "listed": 100000}``
exception                    ``{"type", "message"}``, for a group its ``exceptions`` as well
numpy array or scalar        what ``tolist()`` gives
anything else                its ``str()``, or ``<Name>`` where that would only show an address
===========================  ==========================================================================================
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable, Iterator, Mapping, Set
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from itertools import islice
from math import isfinite
from pathlib import PurePath
from typing import Any, Final
from uuid import UUID

import msgspec

from engine.cleaning import WHOLE_TEXT, TextRule
from events.errors import Refused

__all__ = ("LISTED", "NoJsonForm", "encode", "formed", "is_clean", "is_flat", "is_plain", "json_form")

LISTED: Final = 100_000
"""How many items of an iterator are listed."""

_SCALARS: Final = frozenset({str, int, bool, type(None)})
_KEYS: Final = frozenset({str})
_NATIVE: Final = (date, time, timedelta, Decimal, UUID, bytes, bytearray, memoryview)
_encoder: Final = msgspec.json.Encoder()


class NoJsonForm(Refused, ValueError):
    """A value has no JSON form: it holds itself, or is nested too deeply."""


def encode(value: Any) -> bytes:
    """Encode plain JSON content (or anything msgspec knows) as UTF-8.

    :raises NoJsonForm: if it is nested too deeply
    :raises TypeError: if it holds something msgspec does not know; :func:`json_form` it first
    :raises UnicodeEncodeError: if it holds half of a surrogate pair
    """
    try:
        return _encoder.encode(value)
    except RecursionError:
        raise NoJsonForm("this value holds itself, or is nested too deeply for JSON") from None


def is_flat(value: Any) -> bool:
    """Tell whether a value is an object by text that holds no list, no object and no float, as most arguments are."""
    return type(value) is dict and _KEYS.issuperset(map(type, value)) and _SCALARS.issuperset(map(type, value.values()))


def is_clean(value: Any, rule: TextRule) -> bool:
    """Tell whether JSON content holds nothing that ``rule`` would change; what msgspec cannot encode is not clean."""
    try:
        return not rule.touches(_encoder.encode(value))
    except (ValueError, OverflowError):
        return False


def is_plain(value: Any) -> bool:
    """Tell whether a value is JSON content as it stands: text, numbers, true, false, null, lists, and dicts by text."""
    if type(value) in _SCALARS or is_flat(value):
        return True
    waiting = [value]
    for item in waiting:
        kind = type(item)
        if kind is dict:
            if not _KEYS.issuperset(map(type, item)):
                return False
            if not _SCALARS.issuperset(map(type, item.values())):
                waiting += [each for each in item.values() if type(each) not in _SCALARS]
        elif kind is list:
            if not _SCALARS.issuperset(map(type, item)):
                waiting += [each for each in item if type(each) not in _SCALARS]
        elif kind is not float or not isfinite(item):
            return False
    return True


def json_form(value: Any, rule: TextRule = WHOLE_TEXT) -> Any:
    """Return the value as JSON content, its text and keys cleaned by ``rule``.

    A value that needs no change is returned as the same object; nothing is changed in place. Iterators are used up.

    :raises NoJsonForm: if it holds itself or is nested too deeply
    """
    if type(value) is str:
        return rule.clean(value)
    try:
        encoded = _encoder.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return formed(value, rule)
    if rule.touches(encoded) or not is_plain(value):
        return formed(value, rule)
    return value


def formed(value: Any, rule: TextRule) -> Any:
    """Build the JSON form anew, without looking first whether that is needed.

    :raises NoJsonForm: if it holds itself or is nested too deeply
    """
    try:
        return _Former(rule).form(value)
    except RecursionError:
        raise NoJsonForm("this value is nested too deeply for JSON") from None


class _Former:
    """One walk over one value; ``path`` holds the containers that are being walked, to find cycles."""

    def __init__(self, rule: TextRule) -> None:
        self.clean = rule.clean
        self.path: set[int] = set()

    def form(self, value: Any) -> Any:
        kind = type(value)
        if kind is str:
            return self.clean(value)
        if value is None or kind is bool or kind is int:
            return value
        if kind is float:
            return value if isfinite(value) else None
        if id(value) in self.path:
            raise NoJsonForm(f"this value holds itself (a {kind.__name__}), so it has no JSON form")
        self.path.add(id(value))
        try:
            return self.other(value)
        finally:
            self.path.discard(id(value))

    def other(self, value: Any) -> Any:
        """Form containers first, for they are most of it, then what is left."""
        if isinstance(value, dict | Mapping):
            return self.mapping(value.items())
        if isinstance(value, list | tuple):
            return [self.form(item) for item in value]
        if isinstance(value, Enum):
            return self.form(value.value)
        if isinstance(value, str):
            return self.clean(str.__str__(value))
        if isinstance(value, int):
            return int(value)
        if isinstance(value, float):
            return self.form(float(value))
        if isinstance(value, _NATIVE):
            return msgspec.to_builtins(value)
        if isinstance(value, Set):
            return self.ordered(value)
        return self.object(value)

    def object(self, value: Any) -> Any:
        if isinstance(value, BaseException):
            return self.exception(value)
        if isinstance(value, PurePath):
            return self.clean(str(value))
        if isinstance(value, msgspec.Raw):
            return self.raw(value)
        if isinstance(value, type):
            return value.__qualname__
        fields = _fields(value)
        if fields is not None:
            return self.mapping(fields)
        if hasattr(value, "tolist") and hasattr(value, "dtype"):
            return self.form(value.tolist())
        if isinstance(value, Iterable):
            return self.listed(iter(value))
        return self.clean(_text_of(value))

    def mapping(self, items: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key, value in items:
            name = self.clean(key) if type(key) is str else self.key(key)
            if name in out:
                name = _free(name, out)
            out[name] = self.form(value)
        return out

    def key(self, key: Any) -> str:
        form = self.form(key)
        return form if isinstance(form, str) else self.clean(encode(form).decode())

    def ordered(self, members: Set[Any]) -> list[Any]:
        items = [self.form(member) for member in members]
        try:
            return sorted(items)
        except TypeError:
            return sorted(items, key=encode)

    def listed(self, items: Iterator[Any]) -> list[Any]:
        out = [self.form(item) for item in islice(items, LISTED)]
        if len(out) == LISTED and next(items, items) is not items:
            out.append({"truncated": True, "listed": LISTED})
        return out

    def exception(self, error: BaseException) -> dict[str, Any]:
        out: dict[str, Any] = {"type": type(error).__name__, "message": self.clean(_text_of(error))}
        if isinstance(error, BaseExceptionGroup):
            out["exceptions"] = [self.form(each) for each in error.exceptions]
        return out

    def raw(self, value: msgspec.Raw) -> Any:
        try:
            return self.form(msgspec.json.decode(value))
        except msgspec.DecodeError as error:
            raise NoJsonForm(f"this value holds encoded JSON that is not valid: {error}") from None


def _fields(value: Any) -> Iterable[tuple[str, Any]] | None:
    """Return the fields of a Struct, dataclass, attrs class or Pydantic model; None for anything else."""
    if isinstance(value, msgspec.Struct):
        return _struct_fields(value)
    if dataclasses.is_dataclass(value):
        return [(each.name, getattr(value, each.name)) for each in dataclasses.fields(value)]
    attributes = getattr(type(value), "__attrs_attrs__", None)
    if attributes is not None:
        return [(each.name, getattr(value, each.name)) for each in attributes]
    # What is not imported cannot be an instance of it either, and the import would cost half a second.
    pydantic = sys.modules.get("pydantic")
    if pydantic is not None and isinstance(value, pydantic.BaseModel):
        fields: dict[str, Any] = value.model_dump()
        return fields.items()
    return None


def _struct_fields(value: msgspec.Struct) -> Iterator[tuple[str, Any]]:
    """Yield what msgspec would encode: the tag, then fields by their encoded names, unset and default ones left out."""
    config = value.__struct_config__
    if config.tag_field is not None:
        yield config.tag_field, config.tag
    for each in msgspec.structs.fields(value):
        content = getattr(value, each.name)
        if content is msgspec.UNSET or (config.omit_defaults and _is_default(content, each)):
            continue
        yield each.encode_name, content


def _is_default(content: Any, field: msgspec.structs.FieldInfo) -> bool:
    if field.default is not msgspec.NODEFAULT:
        return content is field.default
    return field.default_factory in (list, dict, set) and type(content) is field.default_factory and not content


def _free(name: str, taken: dict[str, Any]) -> str:
    number = 2
    while f"{name}#{number}" in taken:
        number += 1
    return f"{name}#{number}"


def _text_of(value: Any) -> str:
    """Return the value's own text; its type's name where it has none, or fails to give one."""
    kind = type(value)
    own = {method for name in ("__str__", "__repr__") if (method := getattr(kind, name)) is not getattr(object, name)}
    if not own or hasattr(value, "__qualname__"):
        return f"<{getattr(value, '__qualname__', kind.__qualname__)}>"
    try:
        return str(value)
    except Exception:  # a tool's broken __str__ must not lose the result around it
        return f"<{kind.__qualname__}>"
