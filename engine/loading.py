"""Tool instances: made when a call needs one, kept for the next call of the same user and row (DESIGN 6)."""

from __future__ import annotations

import inspect
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, Final

from engine.contract import Scope, Tool
from engine.credentials import CredentialsError
from engine.opened_rows import opened
from engine.rows import ToolRow
from engine.running import describe_exception
from engine.services import Services
from events.errors import Refused

__all__ = (
    "KEPT",
    "Instances",
    "LoadFailure",
    "actions_metadata",
    "constructed",
    "is_async",
    "reason_of",
    "takes_context",
    "without_secrets",
)

KEPT: Final = 256
"""How many instances are kept; the one that was used longest ago goes first."""

_SECRET_KEY: Final = re.compile(r"key|token|secret|passw|credential|auth|dsn", re.IGNORECASE)
_SHORTEST: Final = 4
"""Shorter values of a configuration are no secrets, and hiding them would leave no readable reason."""


class LoadFailure(Refused):
    """A tool could not be loaded; the text says why and shows no secret."""


class Instances:
    """Makes tool instances and keeps those that may serve several calls.

    An instance is kept for (tool, row, row version, user), so a changed row or another user never meets it.
    """

    def __init__(self, services: Services | None = None, kept: int = KEPT) -> None:
        self._services = services or Services()
        self._kept = kept
        self._instances: OrderedDict[tuple[type[Tool], str, int, str | None], Tool] = OrderedDict()

    def __repr__(self) -> str:
        return f"<Instances {len(self._instances)} kept, at most {self._kept}>"

    async def load(self, tool: type[Tool], row: ToolRow, user_id: str | None) -> Tool:
        """Return an instance of the tool for this row and user (BEHAVIOUR 133).

        Its configuration has the row's credentials, opened as the row's owner. The constructor runs here, in the event
        loop: by contract it only keeps what it is given.

        :raises LoadFailure: if the tool needs a user and there is none, the credentials cannot be opened, or its
            constructor fails
        """
        key = (tool, row.id, row.version, user_id)
        found = self._instances.get(key)
        if found is not None:
            self._instances.move_to_end(key)
            return found
        if tool.user_scoped and user_id is None:
            raise LoadFailure(f"tool {row.name!r} keeps things per user, and this call has no user; give user_id")
        try:
            row = opened(row, self._services.vault, user_id)
        except CredentialsError as error:
            raise LoadFailure(str(error)) from error
        made = constructed(tool, row, user_id, self._services)
        # A configured action's settings hold one call's values.
        if tool.cacheable and not tool.actions_in_config:
            self._instances[key] = made
            if len(self._instances) > self._kept:
                self._instances.popitem(last=False)
        return made


@lru_cache(maxsize=1024)
def takes_context(tool: type[Tool]) -> bool:
    """Tell whether ``execute_action`` wants the call's ``ToolContext``: as a second positional-only parameter."""
    code = getattr(inspect.unwrap(tool.execute_action), "__code__", None)
    # self, action_name, context
    return code is not None and code.co_posonlyargcount >= 3


def is_async(method: Callable[..., Any]) -> bool:
    """Tell whether a bound method is a coroutine function."""
    function = getattr(method, "__func__", None)
    return inspect.iscoroutinefunction(method) if function is None else _is_async(function)


@lru_cache(maxsize=1024)
def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function)


async def actions_metadata(tool: Tool | type[Tool]) -> list[dict[str, Any]]:
    """Return a tool's actions as it describes them; a class is asked through an instance without configuration.

    :raises LoadFailure: if the tool cannot say, or says something that is no list of named actions
    """
    name = tool.__name__ if inspect.isclass(tool) else type(tool).__name__
    try:
        asked = tool({}, Scope(user_id=None, owner=None, tool_id="catalogue")) if inspect.isclass(tool) else tool
        metadata = asked.get_actions_metadata()
        metadata = await metadata if inspect.isawaitable(metadata) else metadata
    except Exception as error:
        config = {} if inspect.isclass(tool) else getattr(tool, "config", {})
        raise LoadFailure(f"tool {name} cannot say what its actions are: {reason_of(error, config)}") from error
    if not isinstance(metadata, list) or not all(isinstance(each, dict) and each.get("name") for each in metadata):
        raise LoadFailure(f"get_actions_metadata of tool {name} must return a list of objects that have a name")
    return metadata


def constructed(tool: type[Tool], row: ToolRow, user_id: str | None, services: Services) -> Tool:
    """Return a new instance of a row's tool.

    :param row: with its credentials opened
    :raises LoadFailure: if its constructor fails
    """
    try:
        kept = row.actions_metadata
        scope = Scope(user_id=user_id, owner=row.user_id, tool_id=row.id, services=services, actions_metadata=kept)
        return tool(row.config, scope)
    except Exception as error:
        reason = reason_of(error, row.config)
        raise LoadFailure(f"tool {row.name!r} (row {row.id}) could not be loaded: {reason}") from error


def reason_of(error: Exception, config: dict[str, Any]) -> str:
    """Return what an exception says, with whatever stands in the configuration taken out: any of it may be secret."""
    return _without(describe_exception(error), _texts(config, 2 * _SHORTEST))


def without_secrets(text: str, config: dict[str, Any]) -> str:
    """Return a text with the configuration's secrets taken out: what stands under keys that sound like it."""
    return _without(text, _texts(config, None))


def _without(text: str, secrets: Iterable[str]) -> str:
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text


def _texts(content: Any, least: int | None) -> Iterator[str]:
    """Yield the values under keys that sound like secrets, and others of ``least`` characters (None: not those)."""
    if isinstance(content, dict):
        for key, value in content.items():
            yield from _texts(value, _SHORTEST if _SECRET_KEY.search(str(key)) else least)
    elif isinstance(content, list | tuple):
        for value in content:
            yield from _texts(value, least)
    elif content is not None and not isinstance(content, bool) and least is not None:
        text = str(content)
        if len(text) >= least:
            yield text
