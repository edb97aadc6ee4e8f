"""JSON content from a file of JSON, YAML or TOML, told apart by its suffix; - is JSON on standard input."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Any, Final

import msgspec

from engine.refusals import kind_of_json
from events.codec import decode_json
from events.errors import Refused

__all__ = ("read_content", "read_file", "read_object")

_LARGEST: Final = 64 * 1024 * 1024


def read_file(file: str) -> bytes:
    """Return a file's content, of - that of standard input.

    :raises Refused: if it cannot be read, or is too large
    """
    try:
        if file == "-":
            content = sys.stdin.buffer.read(_LARGEST + 1)
        else:
            with Path(file).open("rb") as opened:
                content = opened.read(_LARGEST + 1)
    except (OSError, ValueError) as error:
        raise Refused(f"{file}: {getattr(error, 'strerror', None) or error}") from error
    if len(content) > _LARGEST:
        raise Refused(f"{file} is larger than {_LARGEST >> 20} MiB; is it the right one?")
    return content


def read_content(file: str) -> Any:
    """Return the content of a file. :raises Refused: if it cannot be read, or is not of its suffix's form"""
    content, suffix = read_file(file), Path(file).suffix.lower()
    try:
        if suffix == ".toml":
            return tomllib.loads(content.decode())
        if suffix in (".yaml", ".yml"):
            from engine.api.importing.yaml_document import read_yaml

            return read_yaml(content.decode())
        return decode_json(content.decode())
    except (msgspec.DecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        kind = "TOML" if suffix == ".toml" else "JSON"
        raise Refused(f"{file} is no {kind}: {error}") from error
    except UnicodeDecodeError as error:
        raise Refused(f"{file} is no text in UTF-8") from error
    except Refused as error:
        raise Refused(f"{file}: {error}") from error


def read_object(file: str) -> Any:
    """Return the content of a file that must be one object.

    :raises Refused: if it cannot be read, or is no object
    """
    content = read_content(file)
    if not isinstance(content, dict):
        raise Refused(f"{file} is {kind_of_json(content)}, and must be an object of keys and values")
    return content
