"""What makes it happen: tools, gate, executor, service."""

__all__ = ()
