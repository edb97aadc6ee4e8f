"""Parameters of a path and an operation: where each goes, in which style, and which are never a model's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec

from engine.api.headers import RESERVED
from engine.api.importing.argument_names import Argument
from engine.api.importing.imported import Unimportable
from engine.api.importing.keywords import shortened
from engine.api.importing.resolution import References
from engine.api.importing.schemas import Schemas, Written
from engine.api.operation import Injection
from engine.refusals import quoted

__all__ = ("Parameter", "ReadParameters", "merged_parameters", "read_parameters")

_BARRED = RESERVED | {"accept", "content-type"}
"""Headers that are never an argument (API-09): those, and what the operation itself says."""

_IDEMPOTENCY = frozenset({"idempotency-key", "x-idempotency-key"})
_STYLES: dict[str, tuple[str, ...]] = {
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
}
"""The styles of each place, its own first."""

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VARIABLE = re.compile(r"\{([^{}]*)\}")


class Parameter(msgspec.Struct, frozen=True):
    """A parameter as OpenAPI 3 has it."""

    name: str
    place: Literal["path", "query", "header", "cookie"] = msgspec.field(name="in")
    required: bool = False
    description: Any = None
    schema: Any = None
    content: dict[str, Any] = {}
    style: str | None = None
    explode: bool | None = None


class ReadParameters(msgspec.Struct, frozen=True):
    """What an operation's parameters amount to.

    :ivar needs_authorization: an Authorization header is among them: a credential, not an argument
    :ivar idempotency_header: the header that takes an idempotency key, if there is one
    """

    arguments: tuple[Argument, ...]
    needs_authorization: bool = False
    idempotency_header: str | None = None


def merged_parameters(references: References, *lists: Any) -> list[dict[str, Any]]:
    """Return the parameters of a path and of its operation, which go before the path's of the same name and place.

    :raises Unimportable: if one is no object, or refers to nothing
    """
    found: dict[tuple[Any, Any], dict[str, Any]] = {}
    for listed in lists:
        for stated in listed if isinstance(listed, list) else ():
            parameter = references.followed(stated)
            if not isinstance(parameter, dict) or not isinstance(parameter.get("name"), str):
                raise Unimportable("one of its parameters has no name")
            found[parameter["name"], str(parameter.get("in"))] = parameter
    return list(found.values())


def read_parameters(
    parameters: Iterable[dict[str, Any]], path: str, security: tuple[Injection, ...], schemas: Schemas
) -> ReadParameters:
    """Return the arguments among the parameters; a variable in the path that none declares is a text.

    :raises Unimportable: if one of them cannot be said, with its name
    """
    arguments: list[Argument] = []
    needs_authorization, idempotency_header = False, None
    variables = dict.fromkeys(name for name in _VARIABLE.findall(path) if name)
    for parameter in map(_parameter, parameters):
        lower = parameter.name.lower()
        if parameter.place == "path" and parameter.name not in variables:
            continue
        if parameter.place == "header" and lower in _BARRED:
            needs_authorization |= lower == "authorization"
        elif parameter.place == "header" and lower in _IDEMPOTENCY:
            idempotency_header = parameter.name
        elif not _is_credential(parameter, security):
            arguments.append(_argument(parameter, schemas))
    declared = {each.name for each in arguments if each.where == "path"} | _filled(security)
    # A variable in the template's query is filled by the query parameter of its name.
    declared |= {each.name for each in arguments if f"{{{each.name}}}" in path.partition("?")[2]}
    for name in variables:
        if name not in declared:
            written = Written({"type": "string"})
            arguments.append(Argument(where="path", name=name, written=written, required=True))
    return ReadParameters(tuple(arguments), needs_authorization, idempotency_header)


def _parameter(stated: dict[str, Any]) -> Parameter:
    try:
        return msgspec.convert({**stated, "name": stated["name"].strip()}, Parameter, strict=False)
    except msgspec.ValidationError as error:
        raise Unimportable(f"its parameter {quoted(stated['name'])} is not valid: {error}") from None


def _is_credential(parameter: Parameter, security: tuple[Injection, ...]) -> bool:
    """Tell whether a credential goes where the parameter would: nobody else may write there."""
    if parameter.place == "header":
        return any(each.place == "header" and each.name.lower() == parameter.name.lower() for each in security)
    return any(each.place == parameter.place and each.name == parameter.name for each in security)


def _filled(security: tuple[Injection, ...]) -> set[str]:
    return {each.name for each in security if each.place == "path"}


def _argument(parameter: Parameter, schemas: Schemas) -> Argument:
    if parameter.place == "header" and not _TOKEN.fullmatch(parameter.name):
        raise Unimportable(f"its header {quoted(parameter.name)} is no legal name of a header")
    node, wire = parameter.schema, {}
    if node is None and parameter.content:
        content_type, media = next(iter(parameter.content.items()))
        node = media.get("schema") if isinstance(media, dict) else None
        wire = {"contentType": content_type}
    else:
        wire = dict(_style(parameter))
    return Argument(
        where=parameter.place,
        name=parameter.name,
        written=_described(schemas, node, parameter.description),
        required=parameter.required or parameter.place == "path",
        wire=wire,
    )


def _style(parameter: Parameter) -> Iterator[tuple[str, Any]]:
    styles = _STYLES[parameter.place]
    style = parameter.style or styles[0]
    if style not in styles:
        raise Unimportable(f"its parameter {quoted(parameter.name)} has the style {quoted(style)}")
    usual = style in ("form", "deepObject")
    explode = usual if parameter.explode is None else parameter.explode
    if style != styles[0]:
        yield "style", style
    # Without exploding, deepObject is not defined.
    if style == "deepObject" or (style != styles[0] and parameter.explode is not None) or explode is not usual:
        yield "explode", explode or style == "deepObject"


def _described(schemas: Schemas, node: Any, description: Any) -> Written:
    """Return a parameter's schema, with what its top refers to in its place, and the parameter's own description."""
    written = schemas.written(schemas.references.followed(node))
    if isinstance(description, str) and description.strip():
        written = msgspec.structs.replace(written, schema={**written.schema, "description": shortened(description)})
    return written
