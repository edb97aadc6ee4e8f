"""Pages and documents for tests: an article with what stands around it, a PDF, files of office programs."""

from __future__ import annotations

from datetime import datetime
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile

__all__ = ("ARTICLE", "archive_of", "pdf", "presentation", "spreadsheet", "word")

_PARAGRAPHS = "".join(
    f"<p>In {year} the harbour was dredged again, so that ships of up to nine metres may enter at low tide, as the "
    "harbour master said on Tuesday; the work took six weeks, two longer than had been planned.</p>"
    for year in range(1980, 2000)
)
ARTICLE = (
    '<html><head><title>Dredging ends</title><meta name="author" content="Ada Lovelace">'
    '<meta property="article:published_time" content="2026-02-03T10:00:00Z"></head><body>'
    f"<nav><ul>{'<li><a href=/home>Home page of ours</a>' * 30}</ul></nav><div class=cookies>We use cookies</div>"
    f"<article><h1>Dredging ends</h1>{_PARAGRAPHS}<p>Read the <a href='report.pdf'>report</a>.</p></article>"
    f"<footer>{'Imprint and contact. ' * 20}</footer></body></html>"
)
"""More than four kilobytes: a page from which the article is taken."""


def pdf(*texts: str) -> bytes:
    """Return a PDF with a text on each page; none: a page without text."""
    objects = [b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    for text in texts or ("",):
        content = f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET".encode() if text else b""
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content))
        objects.append(
            b"<< /Type /Page /Parent PAGES 0 R /MediaBox [0 0 612 792] /Contents %d 0 R "
            b"/Resources << /Font << /F1 1 0 R >> >> >>" % len(objects)
        )
    pages = len(objects) + 1
    kids = b" ".join(b"%d 0 R" % number for number in range(3, pages, 2))
    objects = [each.replace(b"PAGES", b"%d" % pages) for each in objects]
    objects.append(b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(texts or ("",)), kids))
    objects.append(b"<< /Type /Catalog /Pages %d 0 R >>" % pages)
    objects.append(b"<< /Title (The Title) /Author (Ada) /CreationDate (D:20260131120000Z) >>")
    return _numbered(objects, root=pages + 1)


def _numbered(objects: list[bytes], root: int) -> bytes:
    out = BytesIO()
    out.write(b"%PDF-1.7\n")
    places = []
    for number, content in enumerate(objects, 1):
        places.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, content))
    start = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    out.write(b"".join(b"%010d 00000 n \n" % place for place in places))
    trailer = b"trailer\n<< /Size %d /Root %d 0 R /Info %d 0 R >>\nstartxref\n%d\n%%%%EOF\n"
    out.write(trailer % (len(objects) + 1, root, root + 1, start))
    return out.getvalue()


def archive_of(files: dict[str, bytes]) -> bytes:
    """Return an archive of these files."""
    out = BytesIO()
    with ZipFile(out, "w", ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def word(body: str) -> bytes:
    """Return a Word document of this XML within its body."""
    space = "http://schemas.openxmlformats.org"
    kind = "application/vnd.openxmlformats"
    return archive_of(
        {
            "[Content_Types].xml": f'<Types xmlns="{space}/package/2006/content-types">'
            f'<Override PartName="/word/document.xml" ContentType="{kind}-officedocument.wordprocessingml.'
            'document.main+xml"/></Types>'.encode(),
            "_rels/.rels": f'<Relationships xmlns="{space}/package/2006/relationships"><Relationship Id="r" '
            f'Type="{space}/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/>'
            "</Relationships>".encode(),
            "word/document.xml": f'<w:document xmlns:w="{space}/wordprocessingml/2006/main"><w:body>{body}</w:body>'
            "</w:document>".encode(),
            "docProps/core.xml": b'<c:coreProperties xmlns:c="x" xmlns:dc="http://purl.org/dc/elements/1.1/">'
            b"<dc:title>A letter</dc:title><dc:creator>Ada</dc:creator></c:coreProperties>",
        }
    )


def spreadsheet() -> bytes:
    """Return a spreadsheet of two sheets; the second has one cell, far down."""
    from openpyxl import Workbook

    book, out = Workbook(), BytesIO()
    book.remove(book.worksheets[0])
    first, second = book.create_sheet("Prices"), book.create_sheet("Far")
    for row in (["Coin", "Price", "On"], ["a|b", 1.5, datetime(2026, 1, 31)], [], [None, "=1+1"]):
        first.append(row)
    second["C70000"] = "down here"
    book.save(out)
    return out.getvalue()


def presentation() -> bytes:
    """Return a presentation of one slide: a title, a text, a table, notes."""
    from pptx import Presentation
    from pptx.util import Inches

    shown, out = Presentation(), BytesIO()
    slide = shown.slides.add_slide(shown.slide_layouts[1])
    slide.shapes.title.text = "Harbour"
    slide.placeholders[1].text = "Nine metres"
    table = slide.shapes.add_table(1, 2, Inches(1), Inches(1), Inches(2), Inches(1)).table
    table.cell(0, 0).text, table.cell(0, 1).text = "depth", "9 m"
    slide.notes_slide.notes_text_frame.text = "say it slowly"
    shown.save(out)
    return out.getvalue()
