"""Markdown as a model writes it, as Telegram shows it: a plain text, and what of it is bold, a link, code."""

from __future__ import annotations

from engine.messaging.parts import Entity
from events.errors import Refused

__all__ = ("rendered",)


def rendered(text: str) -> tuple[str, list[Entity]]:
    """Return a text without its marks, and the spans that they marked; there is nothing left to escape.

    :raises Refused: if the library that reads Markdown is not installed
    """
    try:
        from telegramify_markdown import RenderConfig, convert
    except ImportError:
        raise Refused(
            'For parse_mode "Markdown" the package telegramify-markdown must be installed: calljournal[telegram]. '
            "Send the text without parse_mode."
        ) from None
    plain, spans = convert(text, latex_escape=False, config=RenderConfig.isolated())
    return plain, [span.to_dict() for span in spans]
