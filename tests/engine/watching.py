"""Tools that say when they were called and when they have returned."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
from anyio.lowlevel import checkpoint

__all__ = ("NAMED", "Held", "Watched")

NAMED = {"type": "object", "properties": {"name": {"type": "string"}}}


class Watched:
    """Tools that note when they are called and when they have returned."""

    def __init__(self) -> None:
        self.called: list[str] = []
        self.returned: list[str] = []

    async def works(self, name: str) -> str:
        self.called.append(name)
        for _ in range(3):
            await checkpoint()
        return self.finish(name)

    def finish(self, name: str) -> str:
        self.returned.append(name)
        return name

    async def tidies(self, name: str) -> str:
        """Needs a while to stop."""
        self.called.append(name)
        try:
            await checkpoint()
        finally:
            with anyio.CancelScope(shield=True):
                await checkpoint()
        return self.finish(name)

    async def raises(self, name: str) -> str:
        self.called.append(name)
        await checkpoint()
        raise ValueError(name)

    def blocks(self, name: str) -> str:
        self.called.append(name)
        return name

    async def yields(self, name: str) -> AsyncIterator[str]:
        self.called.append(name)

        async def items() -> AsyncIterator[str]:
            await checkpoint()
            yield name

        return items()


class Held:
    """A tool that runs until it is let go."""

    def __init__(self) -> None:
        self.runs = 0
        self.release = anyio.Event()

    async def work(self) -> str:
        self.runs += 1
        await self.release.wait()
        return "done"
