"""What an outside service refused, or did not answer."""

from __future__ import annotations

from events.errors import Refused

__all__ = ("ServiceError",)


class ServiceError(Refused):
    """A request to a tool's service brought nothing usable; the text is fit for a model and holds no secret.

    :ivar status: the HTTP status; None: no response came, or the request was not sent
    """

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        self.status = status

    def __reduce__(self) -> tuple[type[ServiceError], tuple[str, int | None]]:
        return type(self), (str(self), self.status)

    @property
    def may_pass(self) -> bool:
        """Whether another time, or another service, may do better: it was not the request that was wrong."""
        return self.status is None or self.status in (202, 403, 408, 429) or self.status >= 500
