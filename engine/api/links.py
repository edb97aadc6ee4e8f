"""Links of a response's header (RFC 8288)."""

from __future__ import annotations

import re
from typing import Final

from engine.net.reply import Reply

__all__ = ("linked",)

_LONGEST: Final = 65_536
_TOKEN: Final = r"[\w!#$&+.^`|~-]+\*?"  # noqa: S105
_PARAMETER: Final = re.compile(rf';[ \t]*({_TOKEN})[ \t]*(?:=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^\s,;"]*)))?[ \t]*')
# Blanks are taken once and not given back: of a header of nothing else, all ways to split it would be tried.
_LINK: Final = re.compile(r"[ \t]*(?:,[ \t]*)*<([^<>]*)>[ \t]*")


def linked(reply: Reply, relation: str) -> str | None:
    """Return the target of the first link with a relation, as it stands there; None: there is none.

    A link that says that it is another document's (``anchor``) is passed over; of several ``rel`` the first counts.
    """
    for name, value in reply.headers:
        if name.lower() == "link":
            for target, parameters in _links(value[:_LONGEST]):
                if relation in parameters.get("rel", "").lower().split() and "anchor" not in parameters:
                    return target
    return None


def _links(value: str) -> list[tuple[str, dict[str, str]]]:
    found: list[tuple[str, dict[str, str]]] = []
    place = 0
    while link := _LINK.match(value, place):
        place = link.end()
        parameters: dict[str, str] = {}
        while parameter := _PARAMETER.match(value, place):
            place = parameter.end()
            parameters.setdefault(parameter[1].lower(), parameter[2] or parameter[3] or "")
        found.append((link[1].strip(), parameters))
    return found
