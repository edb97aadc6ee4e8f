"""Whether tools can work at present: those that can tell are asked, and are in no turn while they cannot."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from time import monotonic
from typing import Any, Final

import anyio
import msgspec

from engine.contract import Tool
from engine.loading import is_async
from engine.running import comes_from_outside, describe_exception
from engine.services import Services
from engine.threads import ThreadJob, Threads

__all__ = ("Availability", "can_tell")

_log = logging.getLogger("calljournal.toolsets")
_AGAIN: Final = 30.0
_WITHIN: Final = 1.0
_THREADS: Final = 8


def can_tell(tool: type[Tool]) -> bool:
    """Tell whether a tool has ``unavailable``, by which it says that it cannot work at present."""
    return callable(getattr(tool, "unavailable", None))


class _Said(msgspec.Struct, frozen=True):
    """What a tool said, as of a moment of the monotonic clock."""

    reason: str | None
    at: float

    @property
    def stale(self) -> bool:
        return monotonic() > self.at + _AGAIN


class Availability:
    """What the tools of one engine say; each is asked at most every 30 s.

    :param services: what they are asked with
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._said: dict[type[Tool], _Said] = {}
        self._asking: dict[type[Tool], anyio.Lock] = {}
        self._jobs: dict[type[Tool], ThreadJob] = {}
        self._threads = Threads(_THREADS)

    def __repr__(self) -> str:
        away = sum(said.reason is not None for said in self._said.values())
        return f"<Availability of {len(self._said)} tools, {away} unavailable>"

    async def why_not(self, tool: type[Tool]) -> str | None:
        """Return why a tool cannot work at present, for people; None: it can, or cannot tell.

        One that raises, takes longer than a second, or says anything but a text or None is taken to be unable to.
        """
        if not can_tell(tool):
            return None
        asking = self._asking.setdefault(tool, anyio.Lock())
        said = self._said.get(tool)
        # While one turn asks, the others go by what was said before.
        if said is not None and (asking.locked() or not said.stale):
            return said.reason
        async with asking:
            said = self._said.get(tool)
            if said is None or said.stale:
                self._said[tool] = _Said(await self._ask(tool), monotonic())
                self._tell(tool, said)
        return self._said[tool].reason

    async def _ask(self, tool: type[Tool]) -> str | None:
        late = f"it did not say within {_WITHIN:g} s whether it can work"
        job = self._jobs.get(tool)
        if job is not None and job.started and not job.ended:
            # Asked once more, it would take the threads of the others, one after the other.
            return late
        try:
            with anyio.fail_after(_WITHIN):
                said = await self._answer(tool)
        except TimeoutError as error:
            return str(error) or late
        except BaseException as error:
            # Whatever a stranger's tool raises there, the other tools are not affected.
            if comes_from_outside(error):
                raise
            return f"it failed to say whether it can work: {describe_exception(error)}"
        if said is None or isinstance(said, str):
            return said or None
        return "it did not say with a text, or None, whether it can work"

    async def _answer(self, tool: type[Tool]) -> Any:
        hook: Callable[[Services], Any] = tool.unavailable  # type: ignore[attr-defined]
        if is_async(hook):
            return await hook(self._services)
        job = self._jobs[tool] = self._threads.job(lambda: hook(self._services))
        said = await job.run()
        return await said if inspect.isawaitable(said) else said

    def _tell(self, tool: type[Tool], before: _Said | None) -> None:
        reason, name = self._said[tool].reason, tool.name or tool.__name__
        if reason == (None if before is None else before.reason):
            return
        if reason is None:
            _log.info("tool %s can work again", name)
        else:
            _log.warning("tool %s is left out of turns while it cannot work: %s", name, reason)
