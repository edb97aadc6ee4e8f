"""The process that reads one page: what a hostile page does to it ends with it.

``python -m engine.web.converter KIND URL`` reads the body from standard input and writes a :class:`WebDocument`, or why
there is none, as JSON to standard output. KIND is one of :data:`KINDS`. Its memory and its time are bounded, and it can
write no file.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from types import MappingProxyType
from typing import Final, NoReturn

import msgspec

from engine.web.document import Unreadable, WebDocument

__all__ = ("CPU_SECONDS", "KINDS", "MEMORY", "Answer", "main")

MEMORY: Final = 1024 * 1024 * 1024
"""Bytes of memory that reading a page may take."""

CPU_SECONDS: Final = 30
"""Seconds of work; the time on the clock is the caller's to bound."""

KINDS: Final = MappingProxyType(
    {
        "article": ("engine.web.article", "read_article"),
        "html": ("engine.web.article", "read_whole"),
        "pdf": ("engine.web.pdf", "read_pdf"),
        "docx": ("engine.web.word", "read_word"),
        "pptx": ("engine.web.slides", "read_slides"),
        "xlsx": ("engine.web.sheets", "read_sheets"),
    }
)


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What the process found: one of the two."""

    document: WebDocument | None = None
    problem: str | None = None


def main() -> None:
    """Read the body and answer."""
    _, kind, url = sys.argv
    body = sys.stdin.buffer.read()
    _limit()
    sys.stdout.buffer.write(msgspec.json.encode(_answer(kind, body, url)))


def _answer(kind: str, body: bytes, url: str) -> Answer:
    module, function = KINDS[kind]
    try:
        read: Callable[[bytes, str], WebDocument] = getattr(import_module(module), function)
        return Answer(document=read(body, url))
    except Unreadable as error:
        return Answer(problem=str(error))
    except MemoryError:
        return Answer(problem="it takes too much memory")
    except Exception as error:  # a parser may raise anything over a broken file; it is told, not swallowed
        return Answer(problem=f"it is broken, or of a form that is not known ({type(error).__name__})")


def _limit() -> None:
    with suppress(ImportError):  # not on Windows: there, only time is bounded
        import resource

        for kind, most in (
            (resource.RLIMIT_AS, MEMORY),
            (resource.RLIMIT_CPU, CPU_SECONDS),
            (resource.RLIMIT_FSIZE, 0),
            (resource.RLIMIT_CORE, 0),
        ):
            with suppress(ValueError, OSError):  # the limit is lower already
                resource.setrlimit(kind, (most, most))
        signal.signal(signal.SIGXCPU, _late)


def _late(*_: object) -> NoReturn:
    raise TimeoutError("it takes too long")


if __name__ == "__main__":
    main()
