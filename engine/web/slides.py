"""Presentations as text, by python-pptx: each slide's texts, tables and notes. Runs in the converter's process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from engine.web.archive import opened_archive, stated_in
from engine.web.document import LARGEST_TEXT, WebDocument, clipped

__all__ = ("read_slides",)


def read_slides(body: bytes, url: str) -> WebDocument:  # noqa: ARG001 - as the other readers are called
    """Return what stands on the slides, in their order."""
    from pptx import Presentation

    slides = Presentation(opened_archive(body)).slides
    parts: list[str] = []
    size = 0
    for number, slide in enumerate(slides, 1):
        lines = [f"## Slide {number}", *_texts(slide.shapes)]
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            notes = slide.notes_slide.notes_text_frame.text.strip()
            lines += [f"Notes: {notes}"] if notes else []
        parts.append("\n\n".join(lines))
        size += len(parts[-1])
        if size > LARGEST_TEXT:
            break
    stated = stated_in(body)
    text, cut = clipped(parts)
    return WebDocument(
        form=f"presentation, {len(slides)} slide{'s' * (len(slides) != 1)} (python-pptx)",
        text=text,
        title=stated.title,
        author=stated.author,
        date=stated.date,
        cut=cut,
    )


def _texts(shapes: Iterable[Any]) -> Iterator[str]:
    for shape in shapes:
        if hasattr(shape, "shapes"):  # a group
            yield from _texts(shape.shapes)
        elif shape.has_text_frame:
            if text := shape.text_frame.text.replace("\v", "\n").strip():
                yield text
        elif getattr(shape, "has_table", False) and shape.has_table:
            yield "\n".join(_row(row) for row in shape.table.rows)


def _row(row: Any) -> str:
    return f"| {' | '.join(' '.join(cell.text.split()) for cell in row.cells)} |"
