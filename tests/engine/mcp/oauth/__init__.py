"""Tests of OAuth towards MCP servers."""

__all__ = ()
