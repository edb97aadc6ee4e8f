"""Postman collections of the formats 2.0 and 2.1 become the actions of an api_tool (docs/api_import.md)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from engine.api.importing.action_names import Call, action_names
from engine.api.importing.imported import Imported, Skipped, Unimportable, check_action, injection_json
from engine.api.importing.postman_collection import Collection, CollectionRequest, read_collection, read_environment
from engine.api.importing.postman_credentials import PostmanCredentials
from engine.api.importing.postman_request import PostmanRequest
from engine.api.importing.postman_url import ReadUrl, read_url
from engine.api.importing.reading import read_content
from engine.api.importing.servers import Servers
from engine.api.masking import Masker
from engine.api.operation import Injection
from events.errors import Refused

__all__ = ("import_collection", "import_postman")

_LEAST_SECRET = 8
_MOST_SECRETS = 500


def import_postman(
    document: bytes | str, *, environment: bytes | str | None = None, base_url: str | None = None
) -> Imported:
    """Return a collection's requests as actions; the same collection gives the same names.

    What cannot be imported is in ``skipped`` with its reason, and the rest is imported. Nothing is fetched, no script
    is run, no file is read. Secrets (authentication, cookies, and headers, queries and variables that are secret or
    sound so) are no part of the actions: they are credentials, and the values that are known stand in ``secrets``.

    :param environment: the export of an environment, whose values go before the collection's
    :param base_url: stands in for a host that is a variable without a value
    :raises Refused: if the document as a whole cannot be read: over 30 MiB, no JSON (with the place), a collection of
        another format, one without items or with too many of them or of secrets; or if ``environment`` or ``base_url``
        is none
    """
    return import_collection(
        read_content(document),
        environment_json=None if environment is None else read_content(environment),
        base_url=base_url,
    )


def import_collection(content: Any, *, environment_json: Any = None, base_url: str | None = None) -> Imported:
    """Return what :func:`import_postman` does, of content that has been read."""
    if base_url is not None:
        base_url = Servers(base_url).chosen()
    environment = [] if environment_json is None else read_environment(environment_json)
    return _Import(read_collection(content, environment), base_url).run()


class _Found(msgspec.Struct, frozen=True):
    """A request whose URL could be read."""

    request: CollectionRequest
    url: ReadUrl


class _Made(msgspec.Struct, frozen=True):
    definition: dict[str, Any]
    security: tuple[Injection, ...]


class _Import:
    """The import of one collection."""

    def __init__(self, collection: Collection, base_url: str | None) -> None:
        self._collection = collection
        self._base_url = base_url
        self._credentials = PostmanCredentials()
        self._skipped: list[Skipped] = []

    def run(self) -> Imported:
        found = self._found()
        made: dict[str, _Made] = {}
        for each, name in zip(found, action_names(_calls(found)), strict=True):
            reading = PostmanRequest(each.request, each.url, self._credentials)
            try:
                definition = reading.definition()
                check_action(definition, reading.security)
            except Refused as error:
                self._skip(each.request, error)
                continue
            made[name] = _Made(definition, reading.security)
            self._skipped += reading.skipped
        masker = self._masker()
        self._masked(made, masker)
        common = _commonest(each.security for each in made.values())
        for action in made.values():
            if action.security != common:
                action.definition["security"] = [injection_json(one) for one in action.security]
        requirements = self._credentials.requirements(each.security for each in made.values())
        origin = Counter(each.url.origin for each in found).most_common(1)
        skipped = (*self._skipped, *self._collection.skipped)
        return Imported(
            title=masker.text(self._collection.title),
            version=self._collection.version,
            base_url=origin[0][0] if origin else "",
            actions={name: each.definition for name, each in made.items()},
            requirements=requirements,
            security=common or (),
            skipped=tuple(Skipped(masker.text(each.operation), masker.text(each.reason)) for each in skipped),
            secrets={name: value for name, value in self._credentials.values.items() if name in requirements},
        )

    def _found(self) -> list[_Found]:
        found = []
        for request in self._collection.requests:
            try:
                found.append(
                    _Found(request, read_url(request.request_json.get("url"), request.variables, self._base_url))
                )
            except Unimportable as error:
                self._skip(request, error)
        return found

    def _skip(self, request: CollectionRequest, error: Refused) -> None:
        self._skipped.append(Skipped(str(request), " ".join(str(error).split())))

    def _masker(self) -> Masker:
        values = [value for name, value in self._credentials.values.items() if name != "username"]
        known = sorted({*values, *self._collection.variables.secrets})
        if len(known) > _MOST_SECRETS:
            # Each is looked for in each text.
            raise Refused(f"The collection has more than {_MOST_SECRETS} secrets: import parts of it.")
        return Masker({str(number): value for number, value in enumerate(known) if len(value) >= _LEAST_SECRET})

    def _masked(self, made: dict[str, _Made], masker: Masker) -> None:
        """Leave out what has a secret's value in clear; a description that has it loses it."""
        for name, each in list(made.items()):
            masked = masker.value(each.definition)
            each.definition["description"] = masked["description"]
            if masked != each.definition or masker.text(name) != name:
                method, url = each.definition["method"], masked["url"]
                reason = "it has the value of a secret in a place where none can be put"
                self._skipped.append(Skipped(f"{method} {masked['description'].splitlines()[0] or url}", reason))
                del made[name]


def _calls(found: list[_Found]) -> list[Call]:
    """Return what the actions are named after; requests that are alike in all of it are numbered."""
    calls, seen = [], Counter[str]()
    for each in found:
        call = Call(each.request.method[:20], each.url.path, " ".join(each.request.names))
        seen[f"{call}\0{call.operation_id}"] += 1
        number = seen[f"{call}\0{call.operation_id}"]
        calls.append(
            call if number == 1 else msgspec.structs.replace(call, operation_id=f"{call.operation_id} {number}")
        )
    return calls


def _commonest(listed: Any) -> tuple[Injection, ...] | None:
    counted = Counter(tuple(each) for each in listed)
    return counted.most_common(1)[0][0] if counted else None
