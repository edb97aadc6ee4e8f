"""Bytes that came in results (images, audio, files): kept apart from the results, for a while."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from engine.services import Services

__all__ = ("Blobs",)

_MOST: Final = 64 * 1024 * 1024


class Blobs:
    """Keeps the latest 64 MiB of one engine, each user's apart; made by ``services.shared``.

    A result names bytes by their SHA-256; whoever can show them (a vision model's adapter) finds them here.
    """

    def __init__(self, _: Services | None = None, most: int = _MOST) -> None:
        """Keep nothing yet.

        :param most: bytes
        """
        self._most = most
        self._kept: OrderedDict[tuple[str | None, str], bytes] = OrderedDict()
        self._size = 0

    def __repr__(self) -> str:
        return f"<Blobs {len(self._kept)} of {self._size} bytes>"

    def keep(self, user_id: str | None, sha256: str, content: bytes) -> None:
        """Keep bytes under their digest, as long as there is room."""
        if self._kept.pop((user_id, sha256), None) is not None:
            self._size -= len(content)
        self._kept[user_id, sha256] = content
        self._size += len(content)
        while self._size > self._most:
            _, oldest = self._kept.popitem(last=False)
            self._size -= len(oldest)

    def find(self, user_id: str | None, sha256: str) -> bytes | None:
        """Return a user's bytes; None: they are not kept any more."""
        return self._kept.get((user_id, sha256))
