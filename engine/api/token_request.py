"""One request for an access token (RFC 6749, 4.4.2), and what its answer says; the other side may be anybody."""

from __future__ import annotations

import re
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

import anyio
import msgspec

from engine.api.client_credentials import ClientCredentials
from engine.api.masking import Masker
from engine.api.retrying import retried
from engine.net.client import SafeClient, safe_client
from engine.net.encryption import crosses_in_clear
from engine.net.errors import DeadlineExceeded, NetError, UnsafeUserUrlError
from engine.net.reply import Reply
from engine.services import Services
from events.errors import Refused

__all__ = ("DEFAULT_LIFETIME", "EXCHANGE", "LONGEST_LIFETIME", "NoToken", "Token", "fetched")

EXCHANGE: Final = 20.0
"""Seconds for a token with all attempts, at most."""

DEFAULT_LIFETIME: Final = 300.0
"""Seconds for which a token is kept whose server does not say how long it lives."""

LONGEST_LIFETIME: Final = 86_400.0
"""Seconds for which a token is kept at most, whatever its server says."""

_SHORTEST: Final = 1.0
_LARGEST: Final = 64 * 1024
_SAID: Final = 300
_CODE: Final = re.compile(r"[a-z0-9_.-]{1,64}")
_TOKEN: Final = re.compile(r"[\x21-\x7e]{1,8000}")
_SECONDS: Final = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,9})?")
_CREDENTIALS: Final = "the tool's owner must correct the client's id and secret"
_HINTS: Final = {
    "invalid_client": _CREDENTIALS,
    "invalid_scope": "the tool's owner must correct the scopes",
    "unauthorized_client": "the tool's owner must have the client allowed this grant",
}


class NoToken(Refused):
    """No access token was given; the text says why, without a secret.

    :ivar settled: whether another call that asks the same would be told the same
    """

    def __init__(self, text: str, *, settled: bool = True) -> None:
        super().__init__(text)
        self.settled = settled


class Token(msgspec.Struct, frozen=True):
    """An access token. Its ``repr`` does not show it.

    :ivar lifetime: seconds from now for which it may be kept
    """

    value: str
    lifetime: float

    def __repr__(self) -> str:
        return f"<Token for {self.lifetime:g} s>"


class _Answer(msgspec.Struct):
    access_token: Any = None
    token_type: Any = None
    expires_in: Any = None
    error: Any = None
    error_description: Any = None


async def fetched(services: Services, credentials: ClientCredentials, deadline: float) -> Token:
    """Ask for a token, again where that may help.

    :param deadline: a moment of AnyIO's clock; it takes no longer than :data:`EXCHANGE` either
    :raises NoToken: if none is given
    """
    own = anyio.current_time() + EXCHANGE
    until = min(deadline, own)
    try:
        await _require_encrypted(services, credentials)
        reply = await retried(partial(_asked, services.shared(safe_client), credentials, until), until)
    except UnsafeUserUrlError as error:
        raise NoToken(f"URL validation error: the token_url: {error}.") from None
    except NetError as error:
        reason = _cleaned(str(error), credentials)
        settled = own <= deadline or not isinstance(error, DeadlineExceeded)
        raise NoToken(f"No access token: {credentials.host}: {reason}.", settled=settled) from None
    return _token_of(reply, credentials)


async def _asked(client: SafeClient, credentials: ClientCredentials, until: float) -> Reply:
    return await client.request(
        "POST",
        credentials.token_url,
        headers=credentials.headers,
        content=credentials.content,
        largest=_LARGEST,
        deadline=max(0.0, until - anyio.current_time()),
    )


async def _require_encrypted(services: Services, credentials: ClientCredentials) -> None:
    """Refuse to send the client's secret in clear, but to the operator's own networks."""
    if urlsplit(credentials.token_url).scheme != "https" and await crosses_in_clear(services, credentials.token_url):
        raise NoToken("No access token: the token_url is not encrypted; its owner must use https.")


def _token_of(reply: Reply, credentials: ClientCredentials) -> Token:
    answer, host = _read(reply), credentials.host
    if answer is None or (answer.error is None and reply.status not in (200, 201)):
        raise NoToken(f"No access token: {host} answered HTTP {reply.status}{_without_word(reply)}.")
    if answer.error is not None:
        raise NoToken(f"No access token: {host} answered {_error(answer, reply, credentials)}.")
    kind = "bearer" if answer.token_type is None else answer.token_type
    if not isinstance(kind, str) or kind.lower() != "bearer":
        raise NoToken(f"No access token: {host} gives tokens of another type than bearer.")
    token = answer.access_token
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise NoToken(f"No access token: {host} answered without one that can be sent.")
    return Token(token, _lifetime(answer.expires_in))


def _read(reply: Reply) -> _Answer | None:
    try:
        return msgspec.json.decode(reply.body, type=_Answer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _without_word(reply: Reply) -> str:
    if 300 <= reply.status < 400:
        return ", a redirect, which is not followed"
    if reply.status == 401:
        return f"; {_CREDENTIALS}"
    return " and no token"


def _error(answer: _Answer, reply: Reply, credentials: ClientCredentials) -> str:
    code = answer.error if isinstance(answer.error, str) and _CODE.fullmatch(answer.error) else "an error"
    said = _cleaned(answer.error_description, credentials) if isinstance(answer.error_description, str) else ""
    hint = _HINTS.get(code) or (_CREDENTIALS if reply.status == 401 else "")
    return f"{code} (HTTP {reply.status}){said and ': '}{said}{hint and '; '}{hint}"


def _cleaned(text: str, credentials: ClientCredentials) -> str:
    """Return another's words as one short line without the client's secrets, which are looked for before it is cut."""
    own = {"client_id": credentials.client_id, "client_secret": credentials.client_secret, **credentials.forms}
    masker = Masker(own)
    line = " ".join("".join(each if each.isprintable() else " " for each in masker.text(text)).split())
    line = masker.text(line).rstrip(".")
    return line if len(line) <= _SAID else f"{line[:_SAID]}…"


def _lifetime(stated: Any) -> float:
    """Return for how many seconds a token may be kept, whatever its server says of that."""
    if isinstance(stated, str) and _SECONDS.fullmatch(stated.strip()):
        stated = float(stated)
    if isinstance(stated, bool) or not isinstance(stated, int | float):
        return DEFAULT_LIFETIME
    return float(min(max(stated, _SHORTEST), LONGEST_LIFETIME))
