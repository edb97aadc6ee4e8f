"""The built-in tools: one file per tool; a file dropped in is a tool at the next start."""

__all__ = ()
