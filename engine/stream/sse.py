"""Server-sent events (the HTML standard, 9.2.6) from chunks of any size: the data of each event, nothing else of it."""

from __future__ import annotations

import codecs
import re

__all__ = ("SseDecoder",)

_LINE_END = re.compile(r"\r\n|\n|\r")
_BOM = "\ufeff"


class SseDecoder:
    """Turns the chunks of a body into the data of its events, wherever the chunks are cut."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pieces: list[str] = []
        self._data: list[str] = []
        self._begun = False

    def feed(self, chunk: str | bytes) -> list[str]:
        """Return the data of the events that end in this chunk, in order; an event without data is none."""
        text = self._decoder.decode(chunk) if isinstance(chunk, bytes) else chunk
        if not self._begun and text:
            self._begun = True
            text = text.removeprefix(_BOM)
        if "\n" not in text and "\r" not in text and self._pieces[-1:] != ["\r"]:
            self._pieces.append(text)
            return []
        return self._lines("".join(self._pieces) + text)

    def flush(self) -> list[str]:
        """Return the data of a last event whose blank line never came: it may be whole all the same."""
        rest = "".join(self._pieces) + self._decoder.decode(b"", final=True)
        self._pieces = []
        return self._lines(f"{rest}\n\n\n")

    def _lines(self, text: str) -> list[str]:
        # A carriage return at the end may be the first half of a line end.
        held = "\r" if text.endswith("\r") else ""
        *lines, rest = _LINE_END.split(text.removesuffix(held))
        self._pieces = [rest, held] if held else [rest]
        events: list[str] = []
        for line in lines:
            if line.startswith("data:"):
                self._data.append(line[5:].removeprefix(" "))
            elif line == "data":
                self._data.append("")
            elif not line and self._data:
                events.append("\n".join(self._data))
                self._data = []
        return events
