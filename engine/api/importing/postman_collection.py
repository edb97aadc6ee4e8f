"""A collection's content: its requests in their folders, each with the authentication and variables that hold there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from engine.api.importing.imported import Skipped, Unimportable
from engine.api.importing.postman_entries import Entry, described, entries
from engine.api.importing.postman_variables import Variables
from engine.refusals import kind_of_json, quoted
from events.errors import Refused

__all__ = ("Collection", "CollectionRequest", "is_collection", "read_collection", "read_environment")

_MOST_ITEMS = 5000
_MOST_VARIABLES = 10_000
_DEEPEST = 30
_NAME = 200
_OLD = "The document is a Postman collection of version 1: export it as Collection v2.1."


class CollectionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request of a collection.

    :ivar names: of its folders, outermost first, and its own
    :ivar request_json: as the collection has it
    :ivar auth_json: the authentication that holds for it; None: there is none
    """

    names: tuple[str, ...]
    request_json: dict[str, Any]
    auth_json: Any
    variables: Variables

    @property
    def method(self) -> str:
        """The method, in capitals; GET where there is none."""
        stated = self.request_json.get("method")
        return stated.strip().upper() if isinstance(stated, str) and stated.strip() else "GET"

    def __str__(self) -> str:
        return f"{self.method[:20]} {' / '.join(self.names)}"[:_NAME]

    def __repr__(self) -> str:
        return f"<CollectionRequest {self}>"


class Collection(msgspec.Struct, frozen=True, kw_only=True):
    """A collection that has been read.

    :ivar variables: those of all its requests
    :ivar skipped: what is no request, and the scripts
    """

    title: str
    version: str
    variables: Variables
    requests: tuple[CollectionRequest, ...]
    skipped: tuple[Skipped, ...] = ()


def is_collection(content: Any) -> bool:
    """Tell whether JSON content is a Postman collection, of whatever version, by what it says of itself."""
    content = _unwrapped(content)
    if not isinstance(content, dict) or "openapi" in content or "swagger" in content:
        return False
    return _schema(content) is not None or _is_old(content)


def read_collection(content: Any, environment: list[Entry]) -> Collection:
    """Read a collection of format 2.0 or 2.1.

    :raises Refused: if it is none, or of another version, or has too much of anything
    """
    content = _unwrapped(content)
    if not isinstance(content, dict):
        raise Refused(f"The document is {kind_of_json(content)}; a Postman collection is an object.")
    schema = _schema(content)
    if schema is None:
        raise Refused(_OLD if _is_old(content) else "The document has no info.schema, so it is no Postman collection.")
    if "/v1." in schema:
        raise Refused(_OLD)
    if "/v2.0" not in schema and "/v2.1" not in schema:
        raise Refused(f"The collection's format ({quoted(schema[:100])}) is not known: 2.0 and 2.1 are.")
    if not isinstance(content.get("item"), list) or not content["item"]:
        raise Refused("The collection has no items, so there is nothing to call.")
    reading = _Reading()
    variables = Variables(reading.variables(content, "The collection"), environment)
    requests = tuple(reading.requests(content, (), _own_auth(content, None), variables))
    info = content["info"]
    return Collection(
        title=_name(info),
        variables=variables,
        version=_version(info.get("version")),
        requests=requests,
        skipped=(*reading.skipped, *reading.scripts_left_out()),
    )


def read_environment(content: Any) -> list[Entry]:
    """Return the variables of an environment's export. :raises Refused: if it is none"""
    if isinstance(content, dict) and isinstance(content.get("environment"), dict):
        content = content["environment"]
    listed = content.get("values") if isinstance(content, dict) else None
    if not isinstance(listed, list):
        raise Refused("The environment has no list of values, so it is no export of a Postman environment.")
    try:
        return entries(listed, "list of values", _MOST_VARIABLES)
    except Unimportable as error:
        raise Refused(f"The environment cannot be read: {error}.") from None


class _Reading:
    """Counts what has been read of one collection."""

    def __init__(self) -> None:
        self.skipped: list[Skipped] = []
        self._items = 0
        self._variables = 0
        self._scripts = 0

    def requests(
        self, folder: dict[str, Any], names: tuple[str, ...], auth_json: Any, variables: Variables
    ) -> Iterator[CollectionRequest]:
        if len(names) > _DEEPEST:
            raise Refused(f"The collection's folders are nested more than {_DEEPEST} levels deep.")
        self._count_scripts(folder)
        for item in folder["item"]:
            self._items += 1
            if self._items > _MOST_ITEMS:
                raise Refused(f"The collection has more than {_MOST_ITEMS} items: import parts of it.")
            if not isinstance(item, dict):
                self.skipped.append(Skipped(_place(names), f"an item is {kind_of_json(item)}, not an object"))
                continue
            inner = (*names, _name(item) or "unnamed")
            own = variables.within(self.variables(item, _place(inner)))
            if isinstance(item.get("item"), list):
                yield from self.requests(item, inner, _own_auth(item, auth_json), own)
                continue
            self._count_scripts(item)
            request = item.get("request")
            request = {"url": request} if isinstance(request, str) else request
            if isinstance(request, dict):
                found = _own_auth(request, _own_auth(item, auth_json))
                yield CollectionRequest(names=inner, request_json=request, auth_json=found, variables=own)
            else:
                self.skipped.append(Skipped(_place(inner), "it has neither a request nor items"))

    def variables(self, stated: dict[str, Any], place: str) -> list[Entry]:
        try:
            found = entries(stated.get("variable"), "list of variables", _MOST_VARIABLES)
        except Unimportable as error:
            raise Refused(f"{place} cannot be read: {error}.") from None
        self._variables += len(found)
        if self._variables > _MOST_VARIABLES:
            raise Refused(f"The collection has more than {_MOST_VARIABLES} variables.")
        return found

    def scripts_left_out(self) -> Iterator[Skipped]:
        if self._scripts:
            yield Skipped("every script", f"scripts are never run, and the collection has {self._scripts}")

    def _count_scripts(self, stated: dict[str, Any]) -> None:
        events = stated.get("event")
        self._scripts += len(events) if isinstance(events, list) else 0


def _unwrapped(content: Any) -> Any:
    """Return a collection without the envelope that Postman's own API puts around it."""
    inner = content.get("collection") if isinstance(content, dict) else None
    return inner if isinstance(inner, dict) and isinstance(inner.get("info"), dict) else content


def _schema(content: dict[str, Any]) -> str | None:
    info = content.get("info")
    schema = info.get("schema") if isinstance(info, dict) else None
    return schema if isinstance(schema, str) and "/collection/" in schema else None


def _is_old(content: dict[str, Any]) -> bool:
    return isinstance(content.get("requests"), list) and "order" in content and "paths" not in content


def _own_auth(stated: dict[str, Any], outer: Any) -> Any:
    own = stated.get("auth")
    return outer if own is None else own


def _place(names: tuple[str, ...]) -> str:
    return " / ".join(names)[:_NAME] or "the collection"


def _name(stated: dict[str, Any]) -> str:
    name = stated.get("name")
    return "".join(filter(str.isprintable, name)).strip()[:_NAME] if isinstance(name, str) else ""


def _version(stated: Any) -> str:
    if isinstance(stated, dict):
        return ".".join(str(stated.get(part, 0))[:20] for part in ("major", "minor", "patch"))
    return described(stated)[:_NAME]
