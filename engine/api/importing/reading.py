"""A document's bytes become JSON content with a known version, or one line that says why not."""

from __future__ import annotations

import codecs
from typing import Any, Literal, TypeAlias

import msgspec

from engine.api.importing.yaml_document import read_yaml
from engine.refusals import kind_of_json, quoted
from events.errors import Refused

__all__ = ("LARGEST", "Dialect", "Source", "read_content", "source_of")

LARGEST = 30 * 1024 * 1024
"""Bytes of a document at most."""

Dialect: TypeAlias = Literal["2.0", "3.0", "3.1"]
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class Source(msgspec.Struct, frozen=True):
    """A document that has been read. ``dialect`` is the version whose rules it keeps."""

    document: dict[str, Any]
    dialect: Dialect


def read_content(document: bytes | str) -> Any:
    """Return the content of a document in JSON or YAML.

    :raises Refused: if it is too large, empty, or neither JSON nor YAML (with the place)
    """
    if len(document) > LARGEST:
        raise Refused(f"The document is larger than {LARGEST // 2**20} MiB.")
    text = _text(document)
    if not text.strip():
        raise Refused("The document is empty.")
    return _content(text)


def source_of(content: Any) -> Source:
    """Return the OpenAPI or Swagger document that this content is.

    :raises Refused: if it is no object, of a version that is not known, or without paths
    """
    if not isinstance(content, dict):
        raise Refused(f"The document is {kind_of_json(content)}; an OpenAPI document is an object.")
    dialect = _dialect(content)
    paths = content.get("paths")
    if not isinstance(paths, dict) or not paths:
        raise Refused("The document has no paths, so there is nothing to call.")
    return Source(content, dialect)


def _text(document: bytes | str) -> str:
    if isinstance(document, str):
        return document.removeprefix("\ufeff")
    encoding = "utf-8"
    for mark, name in _MARKS:
        if document.startswith(mark):
            document, encoding = document[len(mark) :], name
            break
    try:
        return document.decode(encoding)
    except UnicodeDecodeError as error:
        raise Refused(f"The document is not text in {encoding.upper()}: byte {error.start} does not fit.") from None


def _content(text: str) -> Any:
    if not text.lstrip().startswith(("{", "[")):
        return read_yaml(text)
    try:
        return msgspec.json.decode(text.encode("utf-8", "replace"))
    except RecursionError:
        raise Refused("The document is nested too deeply to be read.") from None
    except msgspec.DecodeError as error:
        problem = _placed(str(error), text)
    try:
        # YAML may begin with a brace as well, and takes comments and trailing commas.
        return read_yaml(text)
    except Refused:
        raise Refused(f"The document is not valid JSON: {problem}.") from None


def _placed(problem: str, text: str) -> str:
    """Return the decoder's words with line and column in place of a byte's number."""
    words, _, number = problem.removeprefix("JSON is malformed: ").rpartition(" (byte ")
    if not number.removesuffix(")").isdigit():
        return problem.rstrip(".").lower()
    before = text.encode("utf-8", "replace")[: int(number.removesuffix(")"))].decode("utf-8", "replace")
    return f"{words} (line {before.count(chr(10)) + 1}, column {len(before) - before.rfind(chr(10))})"


def _dialect(document: dict[str, Any]) -> Dialect:
    stated = document.get("openapi", document.get("swagger"))
    if stated is None:
        raise Refused("The document says neither openapi nor swagger, so it is no OpenAPI document.")
    # Unquoted in YAML, 3.0 is a number.
    version = str(stated)
    if "openapi" not in document:
        if version in ("2.0", "2"):
            return "2.0"
    elif version == "3.0" or version.startswith("3.0."):
        return "3.0"
    elif version == "3.1" or version.startswith("3.1."):
        return "3.1"
    name = "openapi" if "openapi" in document else "swagger"
    raise Refused(f"The document's version ({name}: {quoted(version)}) is not known: 3.0, 3.1 and Swagger 2.0 are.")
