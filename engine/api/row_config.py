"""What the row of an api_tool is configured with, looked at before it is stored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from engine.api.importing.examples import sounds_secret
from engine.api.operation import SETTINGS, Operation
from engine.api.origins import stated_origin
from engine.refusals import quoted
from events.errors import Refused

__all__ = ("problems_of", "wanted_secrets")

_BASIC: Final = ("username", "password")
_LISTED: Final = 5
_BARE: Final = (
    "sounds like a secret and has its value here, for all to see: put it into security, and among the secrets"
)


def wanted_secrets(config: dict[str, Any]) -> tuple[str, ...]:
    """Return the names of the secrets that a row's operations take, in their order; what makes no sense is left out."""
    names: dict[str, None] = {}
    for security in (config.get("security"), *[action.get("security") for _, action in _actions(config)]):
        for injection in security if isinstance(security, list) else ():
            if not isinstance(injection, dict):
                continue
            secrets = _taken(injection)
            names.update({name: None for name in secrets if isinstance(name, str) and name and name not in SETTINGS})
    return tuple(names)


def _taken(injection: dict[str, Any]) -> tuple[Any, ...]:
    if injection.get("in") == "oauth2":
        return (injection.get("client_id"), injection.get("client_secret"))
    return _BASIC if injection.get("in") == "basic" else (injection.get("secret"),)


def problems_of(config: dict[str, Any]) -> list[str]:
    """Return what keeps a row's operations from being carried out, the first few."""
    problems = list(_origin_problems(config.get("trusted_origins")))
    for name, action in _actions(config):
        if len(problems) == _LISTED:
            return [*problems, "and there may be more"]
        try:
            operation = Operation.of({"security": config.get("security") or [], **action})
        except Refused as error:
            problems.append(f"{quoted(name)}: {str(error).rstrip('.')}")
            continue
        taken = [secret for each in operation.security for secret in each.secrets if secret in SETTINGS]
        if taken:
            problems.append(f"{quoted(name)}: the credential {quoted(taken[0])} has the name of a setting: rename it")
        problems += [f"{quoted(name)}: {quoted(bare)} {_BARE}" for bare in _bare_secrets(operation, action)]
    return problems


def _origin_problems(stated: object) -> Iterator[str]:
    for each in stated if isinstance(stated, list | tuple) else ():
        try:
            stated_origin(each)
        except Refused as error:
            yield f"trusted_origins: {str(error).rstrip('.')}"


def _bare_secrets(operation: Operation, action: dict[str, Any]) -> Iterator[str]:
    """Yield the names that sound like secrets and have a value in the configuration, which all see who use the row."""
    urls = (operation.url, *operation.destinations)
    given = [pair for url in dict.fromkeys(urls) for pair in parse_qsl(urlsplit(url).query)]
    for group in (action.get("headers"), action.get("query_params")):
        properties = group.get("properties") if isinstance(group, dict) else None
        for name, schema in properties.items() if isinstance(properties, dict) else ():
            given.append((str(name), str(schema.get("value") or "") if isinstance(schema, dict) else ""))
    for name, value in given:
        if value and "{" not in value and sounds_secret(name):
            yield name


def _actions(config: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    actions = config.get("actions")
    for name, action in actions.items() if isinstance(actions, dict) else ():
        if isinstance(action, dict):
            yield str(name), action
