"""A document becomes the actions of an api_tool, whichever kind it says it is."""

from __future__ import annotations

from engine.api.importing.imported import Imported
from engine.api.importing.openapi import import_openapi_content
from engine.api.importing.postman import import_collection
from engine.api.importing.postman_collection import is_collection
from engine.api.importing.reading import read_content
from events.errors import Refused

__all__ = ("import_document",)


def import_document(
    document: bytes | str, *, environment: bytes | str | None = None, base_url: str | None = None
) -> Imported:
    """Return the operations of an OpenAPI or Swagger document, or of a Postman collection, as actions.

    :param environment: the export of a Postman environment, for a collection
    :raises Refused: as ``import_openapi`` and ``import_postman``; if an environment is given with another document
    """
    content = read_content(document)
    if is_collection(content):
        values = None if environment is None else read_content(environment)
        return import_collection(content, environment_json=values, base_url=base_url)
    if environment is not None:
        raise Refused("The document is no Postman collection, so it takes no environment.")
    return import_openapi_content(content, base_url=base_url)
