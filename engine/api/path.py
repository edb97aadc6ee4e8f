"""Paths: a URL's ``{variables}`` filled in one pass, each value within its segment (CASES API-05)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Final
from urllib.parse import quote, unquote

from engine.api.operation import Style
from engine.api.wording import items_of, text_of
from engine.refusals import quoted
from events.errors import Refused

__all__ = ("VARIABLE", "filled_path", "filled_query")

VARIABLE: Final = re.compile(r"\{([^{}]+)\}")

_STARTS: Final = {"label": ".", "matrix": ";"}


def filled_path(
    template: str,
    values: Mapping[str, Any],
    styles: Mapping[str, tuple[Style | None, bool]],
    secret: Collection[str] = (),
) -> str:
    """Return a template's path with its variables filled; whatever a value holds, it cannot leave its segment.

    Variables in ``secret`` stay as they are, and are the only braces in what is returned: those of values are encoded.

    :param styles: of a variable: its style (None: simple) and whether it is exploded
    :raises Refused: if a value is missing or empty, or a segment would be ``.`` or ``..``
    """

    def fill(found: re.Match[str]) -> str:
        name = found[1]
        return found[0] if name in secret else _written(name, values.get(name), *styles.get(name, (None, False)))

    segments = []
    for segment in template.split("/"):
        filled = VARIABLE.sub(fill, segment)
        names = VARIABLE.findall(segment)
        if names and unquote(filled) in ("", ".", ".."):
            raise Refused(f"Parameter {quoted(names[0])} cannot be {quoted(unquote(filled))}: it is part of a path.")
        segments.append(filled)
    return "/".join(segments)


def filled_query(template: str, values: Mapping[str, Any]) -> str:
    """Return the query part of a template with its variables filled. :raises Refused: if a value is missing"""

    def fill(found: re.Match[str]) -> str:
        value = values.get(found[1])
        if value is None:
            raise Refused(f"Parameter {quoted(found[1])} is needed: the URL has a place for it.")
        return quote(text_of(value), safe="")

    return VARIABLE.sub(fill, template)


def _written(name: str, value: Any, style: Style | None, explode: bool) -> str:
    if value is None or value in ([], {}):
        raise Refused(f"Parameter {quoted(name)} is needed: it is part of the URL's path.")
    start, key = _STARTS.get(style or "", ""), quote(name, safe="")
    if not isinstance(value, (list, dict)):
        text = quote(text_of(value), safe="")
        return f";{key}={text}" if style == "matrix" else start + text
    is_object = isinstance(value, dict)
    parts = [(quote(part, safe=""), quote(text, safe="")) for part, text in items_of(value)]
    if explode and style == "matrix":
        return "".join([f";{part if is_object else key}={text}" for part, text in parts])
    if explode:
        texts = [f"{part}={text}" if is_object else text for part, text in parts]
        return start + (start or ",").join(texts)
    flat = ",".join([f"{part},{text}" if is_object else text for part, text in parts])
    return f";{key}={flat}" if style == "matrix" else start + flat
