"""SIGTERM ends a command as Ctrl-C does: what is under way is recorded before it goes."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ("interruptible",)


@contextmanager
def interruptible() -> Iterator[None]:
    """Treat SIGTERM as SIGINT while the block runs; only where the process still has its default."""
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _interrupt(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    signal.raise_signal(signal.SIGINT)
