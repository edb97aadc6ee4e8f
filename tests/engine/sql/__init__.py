"""Tests of the way to a database."""

__all__ = ()
