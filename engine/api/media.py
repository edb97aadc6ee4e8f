"""Media types: what a Content-Type says, and whether what it names is JSON, XML, text or bytes."""

from __future__ import annotations

import re
from typing import Final

import msgspec

__all__ = ("FORM", "JSON", "MULTIPART", "MediaType")

JSON: Final = "application/json"
FORM: Final = "application/x-www-form-urlencoded"
MULTIPART: Final = "multipart/form-data"

_PARAMETER: Final = re.compile(r""";\s*charset\s*=\s*"?([^\s;"']{1,40})""", re.IGNORECASE)
_SHAPE: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+/[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_JSON: Final = frozenset({JSON, "text/json", "application/x-json"})
_XML: Final = frozenset({"application/xml", "text/xml"})
_TEXT: Final = frozenset(
    {
        FORM,
        "application/javascript",
        "application/ecmascript",
        "application/graphql",
        "application/jsonlines",
        "application/json5",
        "application/jwt",
        "application/ndjson",
        "application/rtf",
        "application/sql",
        "application/toml",
        "application/x-javascript",
        "application/x-ndjson",
        "application/x-sh",
        "application/x-yaml",
        "application/yaml",
    }
)
_BYTES: Final = frozenset({"application/octet-stream", "application/pdf", "application/zip", "application/gzip"})


class MediaType(msgspec.Struct, frozen=True):
    """A media type without its parameters, in lower case, and its charset; the name is "" where none is given."""

    name: str
    charset: str | None = None

    @staticmethod
    def of(content_type: object) -> MediaType:
        """Read a Content-Type; what is no media type at all counts as none."""
        if not isinstance(content_type, str):
            return MediaType("")
        name = content_type.partition(";")[0].strip().lower()
        charset = _PARAMETER.search(content_type)
        return MediaType(name if _SHAPE.fullmatch(name) else "", charset[1] if charset else None)

    @property
    def is_json(self) -> bool:
        """Whether it is one JSON text."""
        return self.name in _JSON or self.name.endswith("+json")

    @property
    def is_xml(self) -> bool:
        """Whether it is XML."""
        return self.name in _XML or (self.name.endswith("+xml") and not self.name.startswith("image/"))

    @property
    def is_text(self) -> bool:
        """Whether it is meant to be read as text, JSON and XML included."""
        return (
            self.is_json
            or self.is_xml
            or self.name.startswith("text/")
            or self.name in _TEXT
            or self.name[-5:] == "+yaml"
        )

    @property
    def is_bytes(self) -> bool:
        """Whether it is known not to be text."""
        return self.name in _BYTES or self.name.partition("/")[0] in ("image", "audio", "video", "font", "model")
