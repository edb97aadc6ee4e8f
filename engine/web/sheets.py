"""Spreadsheets as text, by openpyxl: each sheet's rows, formulas by their values. In the converter's process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from engine.web.archive import opened_archive, stated_in
from engine.web.document import LARGEST_TEXT, WebDocument, clipped

__all__ = ("read_sheets",)


def read_sheets(body: bytes, url: str) -> WebDocument:  # noqa: ARG001 - as the other readers are called
    """Return every sheet's rows that have anything in them."""
    from openpyxl import load_workbook

    book = load_workbook(opened_archive(body), read_only=True, data_only=True, keep_links=False)
    parts: list[str] = []
    size = 0
    for sheet in book.worksheets:
        # What a sheet declares its size to be may be wrong by millions of rows.
        sheet.reset_dimensions()
        parts.append(f"## Sheet {sheet.title}\n")
        for line in _lines(sheet.iter_rows(values_only=True)):
            parts.append(line)
            size += len(line)
            if size > LARGEST_TEXT:
                break
        parts.append("")
    stated = stated_in(body)
    text, cut = clipped(parts, "\n")
    count = len(book.worksheets)
    return WebDocument(
        form=f"spreadsheet, {count} sheet{'s' * (count != 1)} (openpyxl)",
        text=text.strip(),
        title=stated.title,
        author=stated.author,
        date=stated.date,
        cut=cut,
    )


def _lines(rows: Iterable[tuple[Any, ...]]) -> Iterator[str]:
    for row in rows:
        cells = [_cell(value) for value in row]
        while cells and not cells[-1]:
            cells.pop()
        if cells:
            yield f"| {' | '.join(cells)} |"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat(" ").removesuffix(" 00:00:00")
    return " ".join(str(value).replace("|", "\\|").split())
