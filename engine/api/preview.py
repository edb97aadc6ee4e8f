"""What a request would send, to be looked at before it is sent."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from engine.api.headers import Header

__all__ = ("Preview",)


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """An exact request with its credentials masked; ``str`` of it is the request as HTTP/1.1 has it.

    :ivar body: bytes that are no UTF-8 are written ``\\xNN``; None: it has no body
    :ivar token_url: where an access token would be fetched before, unless one is kept; None: it needs none
    """

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: str | None
    token_url: str | None = None

    @staticmethod
    def of(
        method: str, url: str, headers: Iterable[Header], content: bytes | None, token_url: str | None = None
    ) -> Preview:
        """Return the preview of a request in its parts."""
        own = list(headers)
        if content is not None or method in ("POST", "PUT", "PATCH"):
            own.append(("Content-Length", str(len(content or b""))))
        body = None if content is None else content.decode("utf-8", "backslashreplace")
        return Preview(method=method, url=url, headers=tuple(own), body=body, token_url=token_url)

    def __str__(self) -> str:
        _, _, rest = self.url.partition("://")
        host, slash, path = rest.partition("/")
        lines = [f"{self.method} {slash}{path} HTTP/1.1", f"Host: {host}"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        if self.token_url is not None:
            lines.insert(0, f"(An access token would be fetched first from {self.token_url}, unless one is kept.)\n")
        return "\n".join([*lines, "", self.body or ""]).rstrip("\n") + "\n"
