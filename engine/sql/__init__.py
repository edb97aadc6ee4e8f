"""One statement's way to a database: where that is, whether it may be reached, what comes back."""

__all__ = ()
