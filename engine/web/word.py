"""Word documents as text, by mammoth. Runs in the converter's process."""

from __future__ import annotations

from typing import Any

from engine.readable import readable_text
from engine.web.archive import opened_archive, stated_in
from engine.web.document import WebDocument, clipped

__all__ = ("read_word",)


def read_word(body: bytes, url: str) -> WebDocument:
    """Return a document's headings, paragraphs, lists and tables. Nothing it links to is opened."""
    import mammoth

    archive = opened_archive(body)
    html = mammoth.convert_to_html(archive, convert_image=mammoth.images.img_element(_without_content)).value
    page, stated = readable_text(html, url), stated_in(body)
    text, cut = clipped([page.text])
    return WebDocument(
        form="Word document (mammoth)",
        text=text,
        title=stated.title,
        author=stated.author,
        date=stated.date,
        links=page.links,
        cut=cut,
    )


def _without_content(image: Any) -> dict[str, str]:  # noqa: ARG001 - the library's signature; it adds the alternative text
    return {"src": ""}
