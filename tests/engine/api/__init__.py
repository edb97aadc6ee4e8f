"""Tests of HTTP calls as actions."""

__all__ = ()
