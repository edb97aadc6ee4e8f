"""Small Postman collections."""

from __future__ import annotations

from typing import Any

import msgspec

from engine.api.importing import Imported, import_postman
from engine.api.row_config import problems_of
from tests.engine.api.importing.documents import sound

__all__ = ("SCHEMA", "collection", "imported_collection", "only", "raw", "request", "setting")

SCHEMA = "https://schema.getpostman.com/json/collection/v{}/collection.json"


def collection(*items: Any, version: str = "2.1.0", **rest: Any) -> dict[str, Any]:
    """Return a collection of these items; ``rest`` goes beside them."""
    return {"info": {"name": "Harbour", "schema": SCHEMA.format(version)}, "item": list(items), **rest}


def request(url: Any = "https://api.example/x", method: str = "GET", name: str = "act", **rest: Any) -> dict[str, Any]:
    """Return an item with a request."""
    return {"name": name, "request": {"method": method, "url": url, **rest}}


def imported_collection(content: Any, *, environment: Any = None, base_url: str | None = None) -> Imported:
    """Import a collection that stands as JSON content; whatever comes of it is sound, and may be kept."""
    values = None if environment is None else msgspec.json.encode(environment)
    result = import_postman(msgspec.json.encode(content), environment=values, base_url=base_url)
    sound(result)
    assert problems_of(result.config) == []
    assert all(each.reason and "\n" not in each.reason + each.operation for each in result.skipped)
    return result


def only(item: dict[str, Any], **rest: Any) -> dict[str, Any]:
    """Return the one action that a collection of one item becomes."""
    (definition,) = imported_collection(collection(item, **rest)).actions.values()
    return definition


def setting(kind: str, **settings: str) -> dict[str, Any]:
    """Return an authentication of 2.1."""
    return {"type": kind, kind: [{"key": key, "value": text} for key, text in settings.items()]}


def raw(text: str, language: str | None = None) -> dict[str, Any]:
    """Return a raw body."""
    options = {"options": {"raw": {"language": language}}} if language else {}
    return {"body": {"mode": "raw", "raw": text, **options}}
