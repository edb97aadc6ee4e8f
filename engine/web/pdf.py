"""PDFs as text, page by page, by pypdfium2. Runs in the converter's process."""

from __future__ import annotations

from typing import Any

from engine.web.document import LARGEST_TEXT, Unreadable, WebDocument, clipped

__all__ = ("read_pdf",)


def read_pdf(body: bytes, url: str) -> WebDocument:  # noqa: ARG001 - as the other readers are called
    """Return a PDF's text. :raises Unreadable: if it is locked, or no PDF"""
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(body)
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            raise Unreadable("it is protected by a password") from None
        raise Unreadable("it is broken") from None
    parts, pages = _parts(document), len(document)
    stated = document.get_metadata_dict(skip_empty=True)
    text, cut = clipped(parts)
    if not parts:
        text = "(there is no text in it: its pages are pictures)"
    return WebDocument(
        form=f"PDF, {pages} page{'s' * (pages != 1)} (pypdfium2)",
        text=text,
        title=stated.get("Title", "")[:300],
        author=stated.get("Author", "")[:300],
        date=_day(stated.get("CreationDate", "")),
        cut=cut,
    )


def _parts(document: Any) -> list[str]:
    parts: list[str] = []
    size = 0
    for number, page in enumerate(document, 1):
        text = "\n".join(line.rstrip() for line in page.get_textpage().get_text_range().splitlines()).strip()
        page.close()
        if text:
            parts.append(f"## Page {number}\n\n{text}")
            size += len(text)
        if size > LARGEST_TEXT:
            break
    return parts


def _day(stated: str) -> str:
    """Return the date in ``D:20260131120000Z`` as others write it."""
    digits = stated.removeprefix("D:")[:8]
    return f"{digits[:4]}-{digits[4:6]}-{digits[6:]}" if len(digits) == 8 and digits.isdigit() else ""
