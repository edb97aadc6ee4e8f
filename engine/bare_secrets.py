"""Secrets among the presets and pinned values of an action: these are kept in clear, for all to see who use the row."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from engine.actions import Action
from engine.credentials import Credentials
from engine.rows import ActionSettings, ToolRow
from engine.secret_forms import SecretForms
from engine.secret_names import ends_as_secret
from engine.write_only import with_write_only
from events.errors import Refused

__all__ = ("check_values", "named_secrets")

_WORDS: Final = re.compile(r"[\s:,;=&/@?\"'()<>\[\]{}|]+")
_SEEN: Final = "and would stand here for all to see who use the row: put it among the secrets"


def named_secrets(action: Action, said: ActionSettings) -> Iterator[str]:
    """Yield which presets and pinned values of an action are secrets by their names; none of them is quoted.

    Texts under names that end as secrets' names do, unless their schema says which texts they may be; and whatever is
    marked ``writeOnly``.
    """
    properties = action.parameters.get("properties", {})
    for key, value in _given(said):
        named = next(_named(key, value, properties.get(key)), None)
        marked: list[Any] = []
        with_write_only(action.parameters, {key: value}, marked.append)
        if named is not None:
            has = "" if named == key else f"has {named!r}, which "
            yield f"{key!r} of {action.name!r} {has}sounds like a secret {_SEEN}"
        elif marked:
            yield f"{key!r} of {action.name!r} is for nobody to read again (writeOnly) {_SEEN}"


def check_values(row: ToolRow, secrets: Callable[[ToolRow], Credentials]) -> None:
    """Refuse that a preset or pinned value of a row is one of its secrets, or has one for a word.

    :param secrets: opens them; asked only where there are values
    :raises Refused: if one is; the text says of all that are, and quotes none
    :raises CredentialsError: if its secrets cannot be opened
    """
    said = [each for each in row.actions or () if each.presets or each.pinned]
    if said and (problems := list(_stored(said, SecretForms(secrets(row))))):
        raise Refused(f"these actions of {row.name!r} cannot be stored: {'; '.join(problems)}")


def _stored(actions: Iterable[ActionSettings], forms: SecretForms) -> Iterator[str]:
    for said in actions:
        for key, value in _given(said):
            if any(forms.holds(part) for text in _texts(value) for part in (text, *_WORDS.split(text))):
                yield f"{key!r} of {said.name!r} is, or has in it, one of the row's secrets {_SEEN}"


def _given(said: ActionSettings) -> Iterator[tuple[str, Any]]:
    yield from said.presets.items()
    yield from said.pinned.items()


def _named(name: str, value: Any, schema: Any) -> Iterator[str]:
    told = schema if isinstance(schema, dict) else {}
    if isinstance(value, str):
        if value and ends_as_secret(name) and not {"enum", "const"} & told.keys():
            yield name
    elif isinstance(value, dict):
        within = told.get("properties")
        for key, item in value.items():
            yield from _named(str(key), item, within.get(key) if isinstance(within, dict) else None)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _named(name, item, told.get("items"))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield str(key)
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
    elif value is not None and not isinstance(value, bool):
        yield str(value)
