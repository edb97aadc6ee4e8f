"""Pages: how an operation's responses lead from one to the next (docs/api_tool.md has the form)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any, Final, Literal

import msgspec

from events.errors import Refused

__all__ = ("ARGUMENT", "Pages", "wanted_pages", "with_argument")

ARGUMENT: Final = "max_pages"
"""The argument that says how many pages a call reads."""

_Most = Annotated[int, msgspec.Meta(ge=1, le=100)]
_Count = Annotated[int, msgspec.Meta(ge=0)]


class Pages(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the next page is said, or how it is asked for.

    :ivar by: ``link``: the response's ``Link`` with ``rel=next``, or a URL in its body; ``cursor``: a text in its body
        that a parameter takes; ``page``, ``offset``: a number that a parameter takes
    :ivar parameter: of the query, as it is on the wire; of all but ``link``
    :ivar next: a JMESPath into the body, for the cursor or the URL
    :ivar first: the number of the first page
    :ivar size: items of a full page: one with fewer is the last; 0: the last is the empty one
    :ivar items: a JMESPath for the list, in what ``project`` leaves; empty: that is the list
    :ivar most: pages that one call may read
    :ivar under: where a link's path must be; None: under the literal beginning of the operation's own
    """

    by: Literal["link", "cursor", "page", "offset"]
    parameter: str = ""
    next: str = ""
    first: _Count = 1
    size: _Count = 0
    items: str = ""
    most: _Most = 10
    under: str | None = None

    def check(self, method: str, compiled: Callable[[str], Any], claimed: Collection[str]) -> None:
        """Make sure that it can be followed.

        :param compiled: compiles a JMESPath
        :param claimed: the query's parameters that are credentials
        :raises Refused: if not, with the reason
        """
        if method != "GET":
            raise Refused(f"The action has pages, and its method is {method}: only what GET reads has pages.")
        if self.by != "link" and not self.parameter:
            raise Refused(f"The action's pages go by {self.by}, and do not say which parameter takes it.")
        if self.parameter in claimed:
            # Both would be sent, and the server might read the wrong one.
            raise Refused("The action's pages go by a parameter that is the tool's credential.")
        if self.by == "cursor" and not self.next:
            raise Refused('The action\'s pages go by cursor, and do not say where it stands ("next").')
        for expression in filter(None, (self.next, self.items)):
            compiled(expression)
        if self.under is not None and not self.under.startswith("/"):
            raise Refused('The action\'s pages have an "under" that is no path: it begins with a slash.')


def with_argument(definition: dict[str, Any]) -> dict[str, Any]:
    """Return an operation's definition with the argument for the number of pages, if it has pages.

    An argument of that name that its owner describes stays as it is described: it may be preset, or pinned. One of the
    headers or the body is the API's own, and then each call reads one page.
    """
    pages, group = definition.get("pages"), definition.get("query_params") or {}
    properties = group.get("properties") or {} if isinstance(group, dict) else None
    if not isinstance(pages, dict) or not isinstance(properties, dict) or ARGUMENT in properties:
        return definition
    if any(ARGUMENT in _described(definition.get(other)) for other in ("headers", "body")):
        return definition
    stated = pages.get("most", Pages(by="link").most)
    most = stated if type(stated) is int and stated > 0 else 1
    argument = {
        "type": "integer",
        "minimum": 1,
        "maximum": most,
        "description": f"How many pages to read, one after another, at most {most}; 1 if absent.",
    }
    return {**definition, "query_params": {**group, "properties": {**properties, ARGUMENT: argument}}}


def _described(group: Any) -> Any:
    return (group.get("properties") or {}) if isinstance(group, dict) else {}


def wanted_pages(pages: Pages | None, values: Mapping[str, Any]) -> int:
    """Return how many pages the values of a call's query ask for. :raises Refused: if that is no such number"""
    wanted = None if pages is None else values.get(ARGUMENT)
    if pages is None or wanted is None:
        return 1
    # 2.0 is a whole number to JSON Schema, too.
    if isinstance(wanted, bool) or not isinstance(wanted, int | float) or wanted not in range(1, pages.most + 1):
        raise Refused(f"Parameter {ARGUMENT} must be a whole number from 1 to {pages.most}.")
    return int(wanted)
