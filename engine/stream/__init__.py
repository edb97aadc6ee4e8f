"""Streamed deltas become calls."""

from engine.stream.assembler import CallAssembler, parse_stream

__all__ = ("CallAssembler", "parse_stream")
