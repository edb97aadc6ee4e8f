"""The command line, ``calljournal``: a file per group of commands."""

__all__ = ()
