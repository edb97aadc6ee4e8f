"""Why a server cannot be called with somebody's authorization; no text holds a token, a code or a query string."""

from __future__ import annotations

import re
from typing import Final

from engine.mcp.errors import NotAllowed, NotAnswered, SessionOver, SignInNeeded

__all__ = (
    "AuthorizationFailed",
    "AuthorizationNeeded",
    "AuthorizationUnavailable",
    "AuthorizedAnew",
    "error_code",
    "shown",
)

_CODE: Final = re.compile(r"[a-z0-9_.-]{1,64}")
_LONGEST: Final = 200


class AuthorizationNeeded(SignInNeeded):
    """A person has to agree first: there is no usable authorization, and a call never waits for one.

    :param url: the server's
    :param why: what is wrong
    :param tool_id: the row to authorize
    """

    def __init__(self, url: str, why: str, tool_id: str) -> None:
        super().__init__(f"{shown(url)} {why}; run `calljournal tools authorize {tool_id}`")


class AuthorizationFailed(NotAllowed):
    """A consent, or its renewal, came to nothing; what was stored before stands."""


class AuthorizationUnavailable(NotAnswered):
    """The authorization cannot be used or renewed now; what is stored was kept, and the same call may succeed later."""

    def __init__(self, text: str) -> None:
        super().__init__(text, ran=False)
        self.text = text


class AuthorizedAnew(SessionOver):
    """A person has agreed anew since the session was opened, perhaps as somebody else; another session is needed."""


def error_code(code: object) -> str | None:
    """Return an OAuth error code (RFC 6749, 5.2) if it is spelt as one: whatever else stands there is not shown."""
    return code if isinstance(code, str) and _CODE.fullmatch(code) else None


def shown(text: str) -> str:
    """Return a URL, or a server's words, as one short line without a query string."""
    line = " ".join("".join(each if each.isprintable() else " " for each in text.partition("?")[0]).split())
    return line if len(line) <= _LONGEST else line[:_LONGEST] + "..."
