"""Tests of the client of MCP servers."""

__all__ = ()
