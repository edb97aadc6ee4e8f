"""What tools that send messages to people stand on: how many a run may send, and how a long text is parted."""

from __future__ import annotations

from engine.messaging.run_counts import RunCounts, run_counts

__all__ = ("RunCounts", "run_counts")
