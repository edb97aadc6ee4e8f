"""Tests of what becomes an action: OpenAPI documents and curl commands."""
