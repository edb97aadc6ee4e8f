"""What a model calls each part of a request: distinct names, the same whenever the document is the same (API-08)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

import msgspec

from engine.api.importing.schemas import Written

__all__ = ("Argument", "Where", "grouped", "named")

Where: TypeAlias = Literal["path", "query", "header", "cookie", "body"]

_ORDER: tuple[Where, ...] = ("path", "query", "header", "cookie", "body")
_GROUPS = {"header": "headers", "body": "body"}
# The strictest of the providers takes these characters, and as many.
_LEGAL = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_LIMIT = 64


class Argument(msgspec.Struct, frozen=True, kw_only=True):
    """One value of a request.

    :ivar name: on the wire
    :ivar written: its schema, described
    :ivar wire: what else its wire form says (``style``, ``explode``, ``contentType``)
    :ivar encoding_json: of a form's field: how it is encoded
    :ivar whole: it is the body itself
    """

    where: Where
    name: str
    written: Written
    required: bool = False
    wire: dict[str, Any] = {}
    encoding_json: dict[str, Any] = {}
    whole: bool = False


def named(arguments: Iterable[Argument]) -> list[tuple[str, Argument]]:
    """Return each argument with its name, in the order path, query, header, cookie, body.

    A name that is free and that all providers take is kept; one that comes again is followed by where it goes
    (``id``, ``id_query``, ``id_body``).
    """
    ordered = sorted(arguments, key=lambda each: _ORDER.index(each.where))
    taken: dict[str, Argument] = {}
    for argument in ordered:
        if _LEGAL.fullmatch(argument.name):
            taken.setdefault(argument.name, argument)
    result = []
    for argument in ordered:
        name = argument.name
        if taken.get(name) is not argument:
            name = _distinct(argument, taken)
            taken[name] = argument
        result.append((name, argument))
    return result


def _distinct(argument: Argument, taken: Iterable[str]) -> str:
    clean = re.sub(r"[^A-Za-z0-9_-]+", "_", argument.name).strip("_")[:_LIMIT]
    if clean and clean not in taken:
        return clean
    base = f"{clean[: _LIMIT - 12]}_{argument.where}".lstrip("_")
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base}_{number}"
    return name


def grouped(arguments: list[tuple[str, Argument]], definition: dict[str, Any]) -> None:
    """Put named arguments into an operation's definition: its groups, wire forms, encoding rules and whole body."""
    wire: dict[str, dict[str, Any]] = {}
    for name, argument in arguments:
        kind = _GROUPS.get(argument.where, "query_params")
        group = definition.setdefault(kind, {"type": "object", "properties": {}, "required": []})
        group["properties"][name] = argument.written.schema
        if argument.required:
            group["required"].append(name)
        if argument.whole:
            definition["body_whole"] = name
        elif form := _wire(name, argument):
            wire.setdefault(kind, {})[name] = form
        if argument.encoding_json:
            definition.setdefault("body_encoding_rules", {})[name] = argument.encoding_json
    if wire:
        definition["wire"] = wire


def _wire(name: str, argument: Argument) -> dict[str, Any]:
    renamed = name != argument.name
    form = {"name": argument.name} if renamed else {}
    if argument.where == "cookie" or (renamed and argument.where in ("path", "query")):
        form["in"] = argument.where
    return {**form, **argument.wire}
