"""One exchange with a tool's service: sent through the one way out, again where that may help, and read whole."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

import anyio
import msgspec

from engine.api.masking import Masker
from engine.api.retrying import RETRIED, retried
from engine.contract import ToolContext
from engine.net.client import safe_client
from engine.net.errors import NetError
from engine.net.reply import Reply
from engine.remote.request import RemoteRequest
from engine.remote.service_error import ServiceError
from engine.services import Services

__all__ = ("NOT_DONE", "Exchange", "seconds_left")

NOT_DONE: Final = frozenset({429})
"""Statuses after which a request has certainly not taken effect, so that even a message may be sent again."""

_LARGEST: Final = 4 * 1024 * 1024
_ERROR_TEXT: Final = 500
_SHARE: Final = 0.95
"""Of the time a call has, what its requests may take: the rest is for its result."""


def _unread(_: Any) -> None:
    """Find nothing: the text of an error is shown as it is."""


class Exchange:
    """Sends the requests of one call, within its time. What comes back is without the row's secrets."""

    def __init__(self, services: Services, service: str, masker: Masker, seconds: float) -> None:
        """Take what all requests of the call have in common.

        :param service: what texts call it
        :param seconds: for all of them together
        """
        self._client = services.shared(safe_client)
        self._service = service
        self._masker = masker
        self._deadline = anyio.current_time() + seconds

    @property
    def deadline(self) -> float:
        """When it must be over: a moment of AnyIO's clock."""
        return self._deadline

    async def reply(
        self,
        request: RemoteRequest,
        *,
        statuses: frozenset[int] = RETRIED,
        follow: bool = False,
        read: Callable[[Reply], Reply] | None = None,
    ) -> Reply:
        """Send a request and return the reply, whatever its status.

        :param statuses: after which it is sent again
        :param follow: whether redirects are followed; a request with secrets follows none
        :param read: changes each reply before it is judged
        :raises ServiceError: if no whole reply came
        """

        async def send() -> Reply:
            came = await self._client.request(
                request.method,
                request.url,
                headers=request.headers,
                content=request.content,
                follow=follow,
                largest=_LARGEST,
                deadline=max(0.0, self._deadline - anyio.current_time()),
            )
            return came if read is None else read(came)

        try:
            return await retried(send, self._deadline, statuses=statuses)
        except NetError as error:
            raise ServiceError(self._masker.text(f"{self._service} cannot be reached or read: {error}.")) from None

    async def json(self, request: RemoteRequest, reason: Callable[[Any], Any] = _unread) -> Any:
        """Send a request and return the JSON of its reply.

        :param reason: finds what an error's JSON says is wrong; what is no text, or fails, is none
        :raises ServiceError: if there is none, or the status is not one of success
        """
        reply = await self.reply(request)
        content = self.content(reply)
        if not 200 <= reply.status < 300:
            raise self.refusal(reply, _said(reason, content))
        if content is None:
            raise ServiceError(f"{self._service} responded with something that is no JSON.", reply.status)
        return content

    def content(self, reply: Reply) -> Any:
        """Return a reply's JSON without secrets; None: it is none."""
        try:
            return self._masker.value(msgspec.json.decode(reply.body))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None

    def refusal(self, reply: Reply, said: str | None = None) -> ServiceError:
        """Return what a status of failure means.

        :param said: the service's reason; None: what its body says, the beginning of it
        """
        wait = reply.header("retry-after") or ""
        later = (
            f" Retry-After: {wait}." if reply.status in RETRIED and 0 < len(wait) <= 40 and wait.isprintable() else ""
        )
        if 300 <= reply.status < 400:
            reason: str = "it redirects elsewhere, which is not followed"
        else:
            # Masked before it is cut: half a secret is one too.
            reason = _line(self._masker.text(said if said is not None else reply.body.decode("utf-8", "replace")))
        text = f"{self._service} responded with HTTP status {reply.status}"
        return ServiceError(f"{text}: {reason.rstrip('.')}.{later}" if reason else f"{text}.{later}", reply.status)


def _said(reason: Callable[[Any], Any], content: Any) -> str | None:
    try:
        said = reason(content)
    except (LookupError, TypeError, AttributeError):
        # An error's form is not to be relied on: its text is shown as it is then.
        return None
    return said if isinstance(said, str) and said else None


def _line(text: str) -> str:
    """Return the beginning of a text on one line, without characters that do not print."""
    words = " ".join(text[: _ERROR_TEXT * 4].split())
    line = "".join(character for character in words if character.isprintable())
    return line if len(line) <= _ERROR_TEXT else f"{line[:_ERROR_TEXT]}..."


def seconds_left(context: ToolContext, longest: float) -> float:
    """Return how long the requests of a call may take."""
    return max(0.0, min(longest, (context.deadline - datetime.now(UTC)).total_seconds() * _SHARE))
