"""Headers from arguments: checked before anything is sent, and never those that are not an argument's to set.

(CASES API-09.)
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, TypeAlias

from engine.api.operation import Wire
from engine.api.wording import items_of, text_of
from engine.net.field_lines import CREDENTIALS, FRAMING
from engine.refusals import quoted
from events.errors import Refused

__all__ = ("LONGEST", "RESERVED", "Header", "header_name", "header_value", "written_headers")

Header: TypeAlias = tuple[str, str]

LONGEST: Final = 8192
"""Characters of one header's value."""

RESERVED: Final = FRAMING | CREDENTIALS | {"content-encoding", "expect"}
"""Headers that no argument sets: they are the credentials', or the connection's."""

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}")
_FORBIDDEN: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def written_headers(
    arguments: Mapping[str, Any], wires: Mapping[str, Wire], taken: Collection[str] = ()
) -> Iterator[Header]:
    """Yield the headers that arguments make; null and empty text make none.

    :param taken: names in lower case that carry a credential or the idempotency key
    :raises Refused: if a name is not an argument's to set, or a value cannot stand in a header
    """
    for argument, value in arguments.items():
        wire = wires.get(argument) or Wire()
        name = wire.name or argument
        if name.lower() in RESERVED:
            raise Refused(f"Header {name} cannot be set by an argument.")
        if name.lower() in taken:
            raise Refused(f"Header {name} cannot be set by an argument: it carries what the tool is configured with.")
        if value is not None and (written := header_value(name, _text(value, wire.explode or False))):
            yield header_name(name), written


def header_name(name: str) -> str:
    """Return a header's name as it is sent. :raises Refused: if it is none"""
    if not _TOKEN.fullmatch(name):
        raise Refused(f"{quoted(name)} is no name for a header.")
    return name


def header_value(name: str, text: str) -> str:
    """Return a header's value as it is sent, spaces at its ends taken off; on the wire it is ISO 8859-1.

    The error does not show the value.

    :raises Refused: if it holds a line break or another control character, a character beyond ISO 8859-1, or is longer
        than :data:`LONGEST`
    """
    if _FORBIDDEN.search(text):
        raise Refused(f"The value of header {name} holds a line break or control character, which no header can carry.")
    value = text.strip(" \t")
    if any(char > "\xff" for char in value):
        raise Refused(
            f"The value of header {name} holds characters that no header can carry (beyond ISO 8859-1); "
            "write it in other letters, or percent-encoded if the API takes that."
        )
    if len(value) > LONGEST:
        raise Refused(f"The value of header {name} has {len(value)} characters; at most {LONGEST} are sent.")
    return value


def _text(value: Any, explode: bool) -> str:
    """Return a value in style simple: a list's items and an object's keys and values between commas."""
    if not isinstance(value, (list, dict)):
        return text_of(value)
    if not isinstance(value, dict):
        return ",".join([text for _, text in items_of(value)])
    between = "=" if explode else ","
    return ",".join([f"{key}{between}{text}" for key, text in items_of(value)])
