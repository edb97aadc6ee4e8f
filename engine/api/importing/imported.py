"""What an import yields: actions and the credentials they need, as the row of an api_tool holds them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import msgspec

from engine.api.operation import Injection, Operation
from engine.api.origins import guarded_origins, origin_of
from engine.parameters import declared_parameters
from events.errors import Refused

__all__ = ("Imported", "Skipped", "Unimportable", "check_action", "injection_json")


class Unimportable(Refused):
    """One operation cannot be imported; the text is the reason, without the operation's name."""


class Skipped(msgspec.Struct, frozen=True):
    """An operation that was not imported.

    :ivar operation: method and path, as ``GET /users``; a path alone where all of it is left out
    """

    operation: str
    reason: str


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """Actions read from a document or a command, with what they need.

    :ivar base_url: of the document's first server; empty: it has none that can be called
    :ivar actions: the configured operations by name, in the order of the document
    :ivar requirements: the secrets the operations need, in the form of a tool's config requirements
    :ivar security: where the secrets go, for the operations that say nothing else
    :ivar skipped: what was not imported, with the reasons
    :ivar secrets: values found where none belong; they are for the row's credentials, and in nothing else here
    """

    title: str = ""
    version: str = ""
    base_url: str = ""
    actions: dict[str, dict[str, Any]]
    requirements: dict[str, dict[str, Any]] = {}
    security: tuple[Injection, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    secrets: dict[str, str] = {}

    @property
    def config(self) -> dict[str, Any]:
        """The configuration of a row with these actions; it holds no secret."""
        security = [injection_json(injection) for injection in self.security]
        return {"security": security, "trusted_origins": list(self.trusted_origins), "actions": self.actions}

    @property
    def trusted_origins(self) -> tuple[str, ...]:
        """The origin that the credentials are for: the first server's; without one, the only one that takes any."""
        with suppress(Refused):
            if self.base_url:
                return (origin_of(self.base_url),)
        origins = {origin for _, origin in guarded_origins(self.actions, self.security)}
        return tuple(origins) if len(origins) == 1 else ()

    @property
    def withheld(self) -> tuple[Skipped, ...]:
        """The operations that take credentials at another origin: their calls are refused until its owner trusts it."""
        trusted = self.trusted_origins
        return tuple(
            Skipped(
                f"{self.actions[name]['method']} {urlsplit(self.actions[name]['url']).path}",
                f"it would send the credentials to {origin}; if they may go there, add that to trusted_origins",
            )
            for name, origin in guarded_origins(self.actions, self.security)
            if origin not in trusted
        )

    def __repr__(self) -> str:
        left = f", {len(self.skipped)} skipped" if self.skipped else ""
        return f"<Imported {self.title or 'untitled'}: {len(self.actions)} actions{left}>"

    def __rich_repr__(self) -> Iterator[tuple[str, Any]]:  # type: ignore[override]
        """Yield what ``repr`` shows: there may be secrets inside."""
        yield "title", self.title
        yield "actions", len(self.actions)
        yield "skipped", len(self.skipped)


def injection_json(injection: Injection) -> dict[str, Any]:
    """Return the JSON form of an injection, with what it says only."""
    stated: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(injection))
    return stated


def check_action(definition: dict[str, Any], security: Iterable[Injection]) -> None:
    """Make sure that an action can be carried out as it stands, and its arguments checked.

    :raises Refused: if not, with the reason
    """
    import jsonschema_rs

    Operation.of({**definition, "security": [injection_json(each) for each in security]})
    schema = declared_parameters(definition, presets={}, pinned={}, hidden=()).schema
    try:
        jsonschema_rs.validator_for(schema)
    except ValueError as error:
        raise Unimportable(f"its schema is not valid: {str(error).splitlines()[0][:200]}") from None
