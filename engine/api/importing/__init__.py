"""Imports: OpenAPI documents, Postman collections and curl commands become the actions of an api_tool."""

from engine.api.importing.curl import import_curl
from engine.api.importing.document import import_document
from engine.api.importing.imported import Imported, Skipped
from engine.api.importing.openapi import import_openapi
from engine.api.importing.postman import import_postman

__all__ = ("Imported", "Skipped", "import_curl", "import_document", "import_openapi", "import_postman")
