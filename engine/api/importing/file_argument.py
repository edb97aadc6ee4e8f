"""The schema of an argument that is a file."""

from __future__ import annotations

from typing import Any

from engine.api.importing.keywords import shortened

__all__ = ("file_schema",)


def file_schema(about: str) -> dict[str, Any]:
    """Return the schema of a file, given as base64 text or as its parts, with what is said of it."""
    return {
        "type": ["string", "object"],
        "format": "binary",
        "properties": {
            "content": {"type": "string", "description": "The file, in base64."},
            "filename": {"type": "string"},
            "content_type": {"type": "string"},
        },
        "required": ["content"],
        "description": shortened(f"A file: base64 text, or its parts. {about}"),
    }
