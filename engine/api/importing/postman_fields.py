"""Arguments made of a collection's values: what is known becomes a default, what is not has to be given."""

from __future__ import annotations

from typing import Any

import msgspec

from engine.api.importing.argument_names import Argument, Where
from engine.api.importing.examples import example_of, sounds_secret
from engine.api.importing.imported import Unimportable
from engine.api.importing.keywords import shortened
from engine.api.importing.postman_entries import Entry
from engine.api.importing.postman_json import Known
from engine.api.importing.postman_variables import REFERENCE, Variables
from engine.api.importing.schemas import Written
from engine.api.media import MediaType

__all__ = ("Field", "described_by", "field_argument", "json_argument")

_EXAMPLE = 100


class Field(msgspec.Struct, frozen=True):
    """An argument of text, and whether its value is secret: then it is not kept."""

    argument: Argument
    is_secret: bool = False


def field_argument(where: Where, named: list[Entry], variables: Variables) -> Field:
    """Return the argument of entries of one name.

    One that is switched off is optional and has no default, nor has a secret one; one whose variable has no value is
    required.
    """
    entry = named[0]
    expanded = [variables.expanded(each.text) for each in named]
    is_secret = sounds_secret(entry.name) or any(each.is_secret for each in expanded)
    texts = [each.plain for each in expanded if each.plain is not None]
    is_known = len(texts) == len(expanded) and not is_secret
    rule = {"contentType": entry.content_type} if where == "body" and MediaType.of(entry.content_type).name else {}
    value: Any = texts[0] if len(texts) == 1 else texts
    if is_known and rule and MediaType.of(entry.content_type).is_json:
        value = _decoded(texts, entry.name)
    example = example_of(entry.name, value if is_known else "", from_text=True)
    schema = example.schema if entry.disabled or not is_known else example.preset
    shown = "" if is_secret else _example(named, is_known, value)
    about = described_by(entry.about, shown)
    written = Written({**schema, "description": about} if about else schema)
    required = not entry.disabled and not is_known and not is_secret
    argument = Argument(where=where, name=entry.name, written=written, required=required, encoding_json=rule)
    return Field(argument, is_secret and any(each.text for each in named))


def json_argument(name: str, known: Known, *, whole: bool = False) -> Argument:
    """Return the argument of a part of a JSON body, or of all of it."""
    example = example_of(name, known.value)
    if known.is_whole and not (known.dropped and known.value is None):
        return Argument(where="body", name=name, written=Written(example.preset), whole=whole)
    schema = example.schema
    if known.value not in (None, [], {}, ""):
        text = msgspec.json.encode(known.value).decode()
        schema = {**schema, "description": described_by("", text)}
    return Argument(where="body", name=name, written=Written(schema), required=not known.is_whole, whole=whole)


def described_by(about: str, example: str) -> str:
    """Return the description of an argument: what is said of it, and an example where there is one."""
    if about and example and about[-1] not in ".!?:":
        about += "."
    return shortened(f"{about} {example and f'For example {example}'}")


def _example(named: list[Entry], is_known: bool, value: Any) -> str:
    """Return a value that is no default, as far as it says something."""
    if is_known and not named[0].disabled:
        return ""
    text = named[0].text if not is_known else value if isinstance(value, str) else ""
    if not text or len(text) > _EXAMPLE or REFERENCE.fullmatch(text):
        return ""
    return text


def _decoded(texts: list[str], name: str) -> Any:
    try:
        values = [msgspec.json.decode(text.encode("utf-8", "replace")) for text in texts]
    except (msgspec.DecodeError, RecursionError):
        raise Unimportable(f"a field of its form is not valid JSON, though it says so: {name[:100]}") from None
    return values[0] if len(values) == 1 else values
