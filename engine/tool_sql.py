"""Statements of tools that keep something in the journal's database: written once, for both databases, bound per call.

An expression that is built anew for every call costs several times what SQLite takes to run it.
"""

from __future__ import annotations

import re
from typing import Any, Final

from sqlalchemy import BigInteger, Boolean, Integer, Text, bindparam, text
from sqlalchemy.types import TypeEngine

from engine.contract import ToolStore
from events.codec import encode_json
from events.schema import Key, Utc

__all__ = ("Sql",)

_HERE: Final = "tenant = :tenant AND tool_id = :tool_id"
_HOLDS: Final = f"EXISTS (SELECT 1 FROM tool_ledgers WHERE {_HERE} AND token = :token)"  # noqa: S608

_LISTED: Final = "IN (SELECT value FROM json_each(:keys))"
"""SQLite's way to take a list as one parameter: to write out one for each key costs three times the whole read."""

_PARAMETER: Final = re.compile(r"(?<!:):([a-z_0-9]+)")
_KEYS: Final = frozenset(
    {"tenant", "tool_id", "token", "path", "new_path", "title", "key", "space", "start", "stop", "new_start", "after"}
)
_NUMBERS: Final = frozenset({"version", "upto", "number", "part", "limit", "priority", "parent", "offset"})
_MOMENTS: Final = frozenset({"now", "before", "changed_at", "due_at"})


def _type(name: str) -> TypeEngine[Any]:
    if name in _KEYS:
        return Key()
    if name in _NUMBERS:
        return Integer()
    if name in _MOMENTS:
        return Utc()
    if name in ("size", "past", "entries", "last") or name.startswith("bits"):
        return BigInteger()
    return Boolean() if name == "done" else Text()


class Sql:
    """A statement whose parameters have the types their names say.

    ``{here}`` stands for the condition that a row is this tenant's and tool row's, ``{holds}`` for that of every
    statement of a change (see ``engine.tool_ledger``): that nobody has changed anything since it was decided on.

    :param moments: result columns that are moments
    :param pieces: what else stands for what, in the order in which it is put in
    """

    def __init__(self, statement: str, moments: tuple[str, ...] = (), **pieces: str) -> None:
        for name, piece in {**pieces, "here": _HERE, "holds": _HOLDS}.items():
            statement = statement.replace(f"{{{name}}}", piece)
        self._names = frozenset(_PARAMETER.findall(statement))
        typed = [bindparam(name, type_=_type(name)) for name in self._names - {"keys"}]
        self._text, self._listing = text(statement).bindparams(*typed), None
        if "keys" in self._names:
            self._listing = text(statement.replace("IN :keys", _LISTED)).bindparams(*typed)
            self._text = self._text.bindparams(bindparam("keys", expanding=True, type_=Key()))
        self._moments = {name: Utc() for name in moments}

    def __repr__(self) -> str:
        return f"<Sql {str(self._text)[:60]!r}>"

    def bind(self, store: ToolStore, **values: Any) -> Any:
        """Return the statement with its values; tenant and row are the store's."""
        owner = {"tenant": store.tenant, "tool_id": store.tool_id}
        known = {name: value for name, value in owner.items() if name in self._names}
        if self._listing is not None and store.dialect == "sqlite":
            values["keys"] = encode_json(list(values["keys"])).decode()
            bound = self._listing.bindparams(**known, **values)
        else:
            bound = self._text.bindparams(**known, **values)
        return bound.columns(**self._moments) if self._moments else bound
