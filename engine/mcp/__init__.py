"""The client of MCP servers: sessions, listings, results. The tool is ``engine.tools.mcp_tool``."""

__all__ = ()
