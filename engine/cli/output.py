"""Where a command's results go: one JSON object a line for programs, a form for people on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from typing import IO, Any

import anyio.to_thread
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from engine.cli.options import Choice
from engine.cli.plain import one_line
from events.codec import encode_json

__all__ = ("Output", "note", "progress_bar")


class Output:
    """Standard output, in one of its two forms.

    :ivar as_json: one JSON object a line
    """

    def __init__(self, choice: Choice) -> None:
        # None in a program that was started without a standard output.
        self._stream: IO[str] | None = sys.stdout
        terminal = self._stream is not None and self._stream.isatty()
        self.as_json = not terminal if choice.as_json is None else choice.as_json
        self._console: Console | None = None

    @property
    def console(self) -> Console:
        """For people: nothing in what is printed counts as markup."""
        if self._console is None:
            if isinstance(self._stream, TextIOWrapper):
                self._stream.reconfigure(errors="backslashreplace")
            self._console = Console(file=self._stream, markup=False, highlight=False, emoji=False)
        return self._console

    def record(self, record: dict[str, Any]) -> None:
        """Print one JSON object as a line."""
        line = encode_json(record) + b"\n"
        binary = getattr(self._stream, "buffer", None)
        if binary is not None:
            # The form for programs is UTF-8, whatever the locale says.
            binary.write(line)
        elif self._stream is not None:
            self._stream.write(line.decode())

    def flush(self) -> None:
        """Hand on what has been printed. :raises OSError: if nobody takes it"""
        if self._stream is not None:
            self._stream.flush()

    async def live(self, print_it: Callable[[], None]) -> None:
        """Print something at once, in a thread: a slow reader must not stop the journal's heartbeat."""

        def work() -> None:
            print_it()
            self.flush()

        await anyio.to_thread.run_sync(work)


def note(text: str) -> None:
    """Say something besides the results, on standard error."""
    if sys.stderr is not None:
        print(f"calljournal: {one_line(text)}", file=sys.stderr)


@contextmanager
def progress_bar(title: str, unit: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar on standard error while the block runs, if that is a terminal; call what is yielded (done, total)."""
    console = Console(stderr=True, markup=False, highlight=False)
    counted = (BarColumn(), MofNCompleteColumn(), TextColumn(unit), TimeRemainingColumn())
    quiet = not console.is_terminal
    with Progress(TextColumn("{task.description}"), *counted, console=console, transient=True, disable=quiet) as bar:
        task = bar.add_task(title, total=None)

        def advance(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield advance
