"""What the product is measured beside: our own plain functions, or those of a file, unchanged."""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path
from typing import Any, Protocol, cast

from benchmarks import plain

__all__ = ("Reference", "fingerprint_of", "load_reference")


class Reference(Protocol):
    """The functions a reference has; see ``benchmarks.plain``."""

    def prepare(self, rows: dict[str, dict[str, Any]], /) -> tuple[list[dict[str, Any]], dict[str, tuple[str, str]]]:
        """Return function schemas, and where each name leads."""
        ...

    def parse(self, call: dict[str, Any], names: dict[str, tuple[str, str]], /) -> tuple[str, str, Any]:
        """Return a call's tool, action and arguments."""
        ...

    def finish(self, result: Any, /) -> tuple[bytes, str, str]:
        """Return a result's bytes for the log, its preview and its status."""
        ...


def load_reference(path: Path | None) -> Reference:
    """Return the reference in a file, loaded as it stands; our own where none is given.

    :raises SystemExit: if there is no such file
    """
    if path is None:
        return cast("Reference", plain)
    specification = importlib.util.spec_from_file_location("reference", path)
    if specification is None or specification.loader is None or not path.is_file():
        raise SystemExit(f"no reference at {path}")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return cast("Reference", module)


def fingerprint_of(path: Path | None) -> str:
    """Return which reference it is: its file's SHA-256."""
    own = path is None
    file = Path(plain.__file__) if path is None else path
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    return f"benchmarks/plain.py {digest}" if own else f"{file.name} {digest}"
