"""A tool row's configuration as commands are given it: from a file, key by key, and secrets that nobody sees."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from typing import Any, Final, ParamSpec

import click
import msgspec

from engine.cli.config_file import read_object
from engine.cli.failure import Interrupted
from engine.cli.plain import one_line
from engine.config_check import ANY, missing_keys
from engine.credentials import Credentials
from events.codec import decode_json
from events.errors import Refused

__all__ = ("Given", "Wanted", "configuring")

P = ParamSpec("P")
_TEXT: Final = "string"
_TRIES: Final = 3


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """What the options of a command say of a configuration.

    :ivar file: the whole of it
    :ivar pairs: ``key=value`` each
    :ivar dropped: keys to be left out
    :ivar asked: secrets to be asked for
    :ivar variables: ``key=VARIABLE`` each: secrets in the environment
    :ivar forgotten: secrets to be forgotten
    """

    file: str | None = None
    pairs: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    forgotten: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self != Given()

    @property
    def changes_config(self) -> bool:
        """Whether anything is said of what is no secret."""
        return self.file is not None or bool(self.pairs or self.dropped)

    def config(self, requirements: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
        """Return the configuration that this makes of another one.

        :raises Refused: if a value is not of its key's kind, or a secret stands in the command
        """
        config = dict(config) if self.file is None else read_object(self.file)
        for pair in self.pairs:
            key, value = _split(pair, "--set")
            entry = _entry(requirements, key)
            if entry.get("secret") is True:
                raise Refused(
                    f"{key!r} is a secret, and what stands in a command is seen by others: use --secret {key}, or "
                    f"--secret-env {key}=VARIABLE"
                )
            config[key] = _typed(key, value, entry)
        return {key: value for key, value in config.items() if key not in self.dropped}

    def secrets(self, requirements: dict[str, Any]) -> Credentials:
        """Return the secrets, None for those to be forgotten; asks for those that are to be asked for.

        :raises Refused: if a variable is not set, or nothing was entered
        :raises Interrupted: if whoever was asked went away
        """
        secrets: Credentials = dict.fromkeys(self.forgotten)
        for pair in self.variables:
            key, variable = _split(pair, "--secret-env")
            text = os.environ.get(variable)
            if not text:
                raise Refused(f"${variable}, which is to hold {key!r}, is not set or empty")
            secrets[key] = _typed(key, text, _entry(requirements, key), secret=True)
        for key in self.asked:
            text = _hidden(key)
            if not text:
                raise Refused(f"nothing was entered for {key!r}")
            secrets[key] = _typed(key, text, _entry(requirements, key), secret=True)
        return secrets


class Wanted(msgspec.Struct, frozen=True):
    """What a row is to be configured with.

    :ivar secrets: besides those that the configuration holds
    """

    config: dict[str, Any]
    secrets: Credentials

    def completed(self, requirements: dict[str, Any], offered: Iterable[str]) -> Wanted:
        """Return this with what is still missing asked for on the terminal, if there is one.

        :param offered: secrets, by name, that may be given too and may be left out
        :raises Interrupted: if whoever was asked went away
        """
        if not (sys.stdin is not None and sys.stdin.isatty() and sys.stderr is not None and sys.stderr.isatty()):
            return self
        config, secrets = dict(self.config), dict(self.secrets)
        # A key may be wanted only because of what another was answered with.
        while missing := missing_keys(requirements, {**config, **secrets}):
            key, entry = missing[0], _entry(requirements, missing[0])
            if entry.get("secret") is True:
                secrets[key] = _asked(key, entry, secret=True)
            else:
                config[key] = _asked(key, entry)
        for key in offered:
            if key not in secrets and (text := _hidden(key, " (may be empty)")):
                secrets[key] = text
        return Wanted(config, secrets)


def configuring(function: Callable[P, Any]) -> Callable[P, Any]:
    """Give a command the options that say how a row is configured."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


_OPTIONS = (
    click.option("--config", "file", metavar="FILE", help="The configuration: JSON, .yaml or .toml; - reads JSON."),
    click.option("--set", "pairs", metavar="KEY=VALUE", multiple=True, help="One key of it; may be given again."),
    click.option("--secret", "asked", metavar="KEY", multiple=True, help="Ask for a secret, without showing it."),
    click.option(
        "--secret-env", "variables", metavar="KEY=VAR", multiple=True, help="A secret from an environment variable."
    ),
)


def _split(pair: str, option: str) -> tuple[str, str]:
    key, equals, value = pair.partition("=")
    if not equals or not key:
        # Not what was given: it may be a secret.
        raise click.UsageError(f"{option} takes KEY=VALUE, and got no {'=' if key else 'key'}")
    return key, value


def _entry(requirements: dict[str, Any], key: str) -> dict[str, Any]:
    entry = requirements.get(key, requirements.get(ANY))
    return entry if isinstance(entry, dict) else {}


def _typed(key: str, text: str, entry: dict[str, Any], *, secret: bool = False) -> Any:
    """Return what a text means for a key: a text itself, or JSON."""
    kind = entry.get("type")
    if kind == _TEXT or (kind is None and secret):
        return text
    try:
        return decode_json(text)
    except (msgspec.DecodeError, RecursionError):
        if kind is None:
            return text
        raise Refused(f"{key!r} must be {kind}, as JSON; what was given is not") from None


def _asked(key: str, entry: dict[str, Any], *, secret: bool = False) -> Any:
    for _ in range(_TRIES):
        text = _hidden(key) if secret else _shown(key, entry)
        if text:
            return _typed(key, text, entry, secret=secret)
    raise Refused(f"nothing was entered for {key!r}")


def _shown(key: str, entry: dict[str, Any]) -> str:
    choices = entry.get("enum")
    listed = f" ({', '.join(map(str, choices))})" if isinstance(choices, list) else ""
    return _prompted(f"{key}{listed}", hide=False)


def _hidden(key: str, more: str = "") -> str:
    """Ask for a secret; where nobody can be asked, it is a line of standard input."""
    if sys.stdin is None or not sys.stdin.isatty():
        return "" if sys.stdin is None else sys.stdin.readline().rstrip("\r\n")
    return _prompted(f"{key}, not shown{more}", hide=True)


def _prompted(text: str, *, hide: bool) -> str:
    try:
        answer: str = click.prompt(one_line(text), default="", show_default=False, hide_input=hide, err=True)
    except click.Abort:
        raise Interrupted("interrupted; nothing was stored") from None
    return answer
