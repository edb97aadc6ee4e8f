"""Lists of named values in a collection: headers, queries, form fields, variables, settings of an authentication."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from engine.api.importing.imported import Unimportable
from engine.refusals import kind_of_json

__all__ = ("MOST_ENTRIES", "Entry", "described", "entries", "entry_text", "header_lines", "settings_of")

MOST_ENTRIES = 500
"""Entries of one list."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One named value; its ``repr`` does not show it.

    :ivar text: with its ``{{variables}}`` as they stand
    :ivar kind: what the collection calls its type (``file``, ``secret``)
    :ivar several: it stands for several files
    """

    name: str
    text: str = ""
    disabled: bool = False
    about: str = ""
    kind: str = ""
    content_type: str = ""
    several: bool = False

    def __repr__(self) -> str:
        return f"<Entry {self.name}>"


def entries(listed: Any, what: str, most: int = MOST_ENTRIES) -> list[Entry]:
    """Return the entries of a list; those without a name are left out, and null is none.

    :param what: what it is called in errors
    :raises Unimportable: if it is no list of objects, or has too many
    """
    if listed is None:
        return []
    if not isinstance(listed, list):
        raise Unimportable(f"its {what} is {kind_of_json(listed)}, not a list")
    if len(listed) > most:
        raise Unimportable(f"its {what} has {len(listed)} entries; at most {most} are read")
    return [entry for entry in _read(listed, what) if entry.name]


def _read(listed: Iterable[Any], what: str) -> Iterator[Entry]:
    for each in listed:
        if each is None:
            continue
        if not isinstance(each, dict):
            raise Unimportable(f"an entry of its {what} is {kind_of_json(each)}, not an object")
        named = [each[key] for key in ("key", "id", "name") if isinstance(each.get(key), str) and each[key]]
        yield Entry(
            name=named[0].strip() if named else "",
            text=entry_text(each.get("value")),
            disabled=each.get("disabled") is True or each.get("enabled") is False,
            about=described(each.get("description")),
            kind=each["type"] if isinstance(each.get("type"), str) else "",
            content_type=each["contentType"] if isinstance(each.get("contentType"), str) else "",
            several=isinstance(each.get("src"), list) and len(each["src"]) > 1,
        )


def header_lines(text: str) -> list[Entry]:
    """Return headers that stand as lines, ``Name: value`` each."""
    parted = [line.partition(":") for line in text.splitlines()[: MOST_ENTRIES + 1]]
    if len(parted) > MOST_ENTRIES:
        raise Unimportable(f"its headers have more than {MOST_ENTRIES} lines")
    return [Entry(name=name.strip(), text=value.strip()) for name, _, value in parted if name.strip()]


def settings_of(stated: Any) -> dict[str, str]:
    """Return settings by name: 2.1 has them as a list of entries, 2.0 as an object.

    :raises Unimportable: if they are neither
    """
    if isinstance(stated, dict):
        return {key: entry_text(item) for key, item in stated.items()}
    return {each.name: each.text for each in entries(stated, "authentication")}


def entry_text(value: Any) -> str:
    """Return a value as a request has it: text as it is, null as none, anything else as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else msgspec.json.encode(value).decode()


def described(stated: Any) -> str:
    """Return a description, which is a text or an object that holds one."""
    text = stated.get("content") if isinstance(stated, dict) else stated
    return text.strip() if isinstance(text, str) else ""
