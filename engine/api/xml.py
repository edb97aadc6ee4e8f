"""XML bodies: an object as elements, names checked (CASES API-12)."""

from __future__ import annotations

import re
from typing import Any, Final

from engine.api.wording import text_of
from engine.refusals import quoted
from events.errors import Refused

__all__ = ("xml_text",)

_NAME: Final = re.compile(r"@?[^\W\d][\w.-]*(?::[^\W\d][\w.-]*)?")
_NO_XML: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def xml_text(value: Any, root: str, charset: str | None = None) -> str:
    """Return an XML document: text as it is, an object's keys as elements within ``root``, a list as repeated ones.

    A key ``@name`` is an attribute, ``#text`` the element's own text; null is an empty element.

    :raises Refused: if a key cannot be a name in XML, or a text holds a character that XML does not have
    """
    import xmltodict

    if isinstance(value, str):
        return value
    _check(value)
    if not _NAME.fullmatch(root):
        raise Refused(f"{quoted(root)} is no name for an XML element.")
    content = value if isinstance(value, dict) else {"item": value} if isinstance(value, list) else text_of(value)
    return str(xmltodict.unparse({root: content}, encoding=charset or "utf-8"))


def _check(value: Any, depth: int = 0) -> None:
    if depth > 200:
        raise Refused("The body is nested too deeply for XML.")
    if isinstance(value, dict):
        for key, item in value.items():
            if key != "#text" and not _NAME.fullmatch(key):
                raise Refused(f"{quoted(key)} is no name for an XML element.")
            _check(item, depth + 1)
    elif isinstance(value, list):
        for item in value:
            _check(item, depth + 1)
    elif isinstance(value, str) and _NO_XML.search(value):
        raise Refused("The body has a control character, which XML does not have.")
