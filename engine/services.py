"""What the tools of one engine share: the way out, the way to the database, and what is kept between calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from engine.credentials import Vault
from engine.net.policy import NetPolicy

__all__ = ("Services",)

T = TypeVar("T")


class Services:
    """One per engine; one without a database serves a tool that stands alone.

    :ivar net: the policy of every outgoing request
    :ivar resolver: finds a host's addresses; None: the system's
    :ivar tls: whose certificates are trusted; None: the public authorities'
    :ivar vault: opens and seals credentials; its keys are looked for when they are first needed
    :ivar store: the journal's database; None: there is none
    :ivar tasks: a task group that lives as long as the engine; None: no engine is running
    """

    def __init__(
        self,
        net: NetPolicy | None = None,
        *,
        resolver: Any = None,
        tls: Any = None,
        vault: Vault | None = None,
        store: Any = None,
        tasks: Any = None,
    ) -> None:
        self.net = net or NetPolicy()
        self.resolver = resolver
        self.tls = tls
        self.vault = vault or Vault()
        self.store = store
        self.tasks = tasks
        self._shared: dict[Callable[..., Any], Any] = {}

    def __repr__(self) -> str:
        return f"<Services {', '.join(sorted(kind.__name__ for kind in self._shared)) or 'nothing shared yet'}>"

    def shared(self, kind: Callable[[Services], T]) -> T:
        """Return the engine's one object of a kind, made of these services when it is first asked for.

        If it has ``aclose``, that is awaited when the engine closes.
        """
        if kind not in self._shared:
            self._shared[kind] = kind(self)
        return cast("T", self._shared[kind])

    async def aclose(self) -> None:
        """Close everything that was shared; one that fails to close does not keep the others open."""
        errors: list[Exception] = []
        while self._shared:
            _, one = self._shared.popitem()
            close = getattr(one, "aclose", None)
            if close is None:
                continue
            try:
                await close()
            except Exception as error:  # the rest must still be closed; it is raised below
                errors.append(error)
        if errors:
            raise ExceptionGroup("not everything that tools share could be closed", errors)
