"""What the files of office programs have in common: they are archives of XML. Runs in the converter's process."""

from __future__ import annotations

from io import BytesIO
from typing import Final
from xml.etree import ElementTree
from zipfile import ZipFile

import msgspec

from engine.web.document import Unreadable

__all__ = ("Stated", "opened_archive", "stated_in")

_FILES: Final = 10_000
_EXPANDED: Final = 200 * 1024 * 1024
_CORE: Final = "docProps/core.xml"
_TERMS: Final = "{http://purl.org/dc/terms/}"
_ELEMENTS: Final = "{http://purl.org/dc/elements/1.1/}"


class Stated(msgspec.Struct, frozen=True):
    """What a document says of itself; "" where it says nothing."""

    title: str = ""
    author: str = ""
    date: str = ""


def opened_archive(body: bytes) -> BytesIO:
    """Return an archive that may be read.

    A file within it never yields more than the archive declares, so what it declares is what is bounded.

    :raises Unreadable: if it would expand to too much
    """
    with ZipFile(BytesIO(body)) as archive:
        files = archive.infolist()
        if len(files) > _FILES or sum(file.file_size for file in files) > _EXPANDED:
            raise Unreadable("it expands to more than 200 MB, or 10,000 files")
    return BytesIO(body)


def stated_in(body: bytes) -> Stated:
    """Return what an office document says of itself."""
    with ZipFile(BytesIO(body)) as archive:
        if _CORE not in archive.namelist():
            return Stated()
        tree = ElementTree.fromstring(archive.read(_CORE))  # noqa: S314 - expat bounds entities, the process the rest
    title, author, date = (
        (tree.findtext(name) or "").strip()[:300]
        for name in (f"{_ELEMENTS}title", f"{_ELEMENTS}creator", f"{_TERMS}modified")
    )
    return Stated(title, author, date[:10])
