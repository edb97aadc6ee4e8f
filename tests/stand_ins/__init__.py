"""Servers of this machine that stand in for the outside services of tools (``python -m tests.stand_ins NAME``)."""

__all__ = ()
