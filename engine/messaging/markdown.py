"""Markdown as a model writes it, as Telegram shows it: a plain text, and what of it is bold, a link, code."""

from __future__ import annotations

import re
from typing import Final

from engine.messaging.parts import Entity
from events.errors import Refused

__all__ = ("rendered",)

_DEEPEST: Final = 16
_NESTED: Final = re.compile(rf"^(?:[ \t]*(?:>|(?:[-+*]|\d{{1,9}}[.)])(?=[ \t]))){{{_DEEPEST + 1},}}", re.MULTILINE)
_DOLLARS: Final = 1000
"""The library looks for formulas from each of them to the end."""


def rendered(text: str) -> tuple[str, list[Entity]]:
    """Return a text without its marks, and the spans that they marked; there is nothing left to escape.

    :raises Refused: if the library that reads Markdown is not installed, or would take very long, or make very much,
        of the text
    """
    try:
        from telegramify_markdown import RenderConfig, convert
    except ImportError:
        raise Refused(
            'For parse_mode "Markdown" the package telegramify-markdown must be installed: calljournal[telegram]. '
            "Send the text without parse_mode."
        ) from None
    if _NESTED.search(text) or text.count("$") > _DOLLARS:
        raise Refused(
            f"As Markdown the text is too intricate: lists and quotations may be nested {_DEEPEST} deep, and it may "
            f"have {_DOLLARS} dollar signs. Send it without parse_mode."
        )
    plain, spans = convert(text, latex_escape=False, config=RenderConfig.isolated())
    return plain, [span.to_dict() for span in spans]
