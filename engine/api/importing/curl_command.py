"""What a curl command says: its options read, those that cannot be kept to refused."""

from __future__ import annotations

import getopt
import json
from collections.abc import Sequence
from typing import Literal, TypeAlias
from urllib.parse import quote_plus

import msgspec

from events.errors import Refused

__all__ = ("CurlCommand", "FormField", "read_command")

_Kind: TypeAlias = Literal["data", "raw", "urlencoded", "json"]

_SHORT = {
    "X": "request",
    "H": "header",
    "d": "data",
    "F": "form",
    "u": "user",
    "b": "cookie",
    "A": "user-agent",
    "e": "referer",
    "r": "range",
    "G": "get",
    "I": "head",
    "k": "insecure",
    "x": "proxy",
    "E": "cert",
    "K": "config",
    "n": "netrc",
    "T": "upload-file",
    "o": "output",
    "w": "write-out",
    "m": "max-time",
    "D": "dump-header",
    "c": "cookie-jar",
}
_TAKES_VALUE = "request header user cookie user-agent referer range url url-query oauth2-bearer form form-string"
_DATA: dict[str, _Kind] = {
    "data": "data",
    "data-ascii": "data",
    "data-binary": "data",
    "data-raw": "raw",
    "data-urlencode": "urlencoded",
    "json": "json",
}
_FLAGS = "get head"
_IGNORED = (
    "silent show-error verbose include location fail fail-with-body fail-early globoff progress-bar no-buffer "
    "compressed no-progress-meter http1.0 http1.1 http2 http2-prior-knowledge http3 ipv4 ipv6 tlsv1.2 tlsv1.3 "
    "no-keepalive tcp-nodelay remote-name remote-header-name basic path-as-is"
)
_IGNORED_SHORT = "sSviLfg#N0146OJ"
_IGNORED_VALUES = (
    "output write-out max-time connect-timeout retry retry-delay retry-max-time max-redirs limit-rate keepalive-time "
    "dump-header cookie-jar stderr speed-limit speed-time"
)
_REFUSED = {
    "insecure": "certificates are always checked",
    "proxy": "requests go by the engine's own network policy",
    "config": "files are not read",
    "netrc": "files are not read",
    "cert": "client certificates are not supported",
    "key": "client certificates are not supported",
    "cacert": "certificates are checked by the engine's own list",
    "capath": "certificates are checked by the engine's own list",
    "upload-file": "files are not read",
    "resolve": "requests go by the engine's own network policy",
    "connect-to": "requests go by the engine's own network policy",
    "unix-socket": "requests go by the engine's own network policy",
    "digest": "digest authentication is not supported",
    "ntlm": "NTLM is not supported",
    "negotiate": "Negotiate is not supported",
    "aws-sigv4": "signatures are not supported",
    "location-trusted": "credentials never follow a redirect to another host",
    "next": "give one request at a time",
}
_REFUSED_FLAGS = frozenset({"insecure", "netrc", "digest", "ntlm", "negotiate", "location-trusted", "next"})


class FormField(msgspec.Struct, frozen=True):
    """A field of ``-F``. ``content_type`` None: it says none."""

    name: str
    value: str
    content_type: str | None = None


class CurlCommand(msgspec.Struct, kw_only=True):
    """A command's request. Its ``repr`` shows nothing of it: there are secrets inside.

    :ivar data: of all ``-d`` and their kin, joined; None: there are none
    """

    url: str = ""
    method: str = ""
    headers: list[tuple[str, str]] = []
    data: str | None = None
    form: list[FormField] = []
    queries: list[str] = []
    user: str | None = None
    cookie: str | None = None
    as_get: bool = False
    as_head: bool = False
    is_json: bool = False

    def __repr__(self) -> str:
        return "<CurlCommand>"

    @property
    def verb(self) -> str:
        """The method: as it says, else what its options make of it."""
        if self.method:
            return self.method.upper()
        if self.as_head:
            return "HEAD"
        return "POST" if (self.data is not None and not self.as_get) or self.form else "GET"


def read_command(words: Sequence[str]) -> CurlCommand:
    """Return what a command's words say; what only concerns its output is passed over.

    :raises Refused: if an option is not known, not supported, or reads a file; no value is shown
    """
    try:
        options, urls = getopt.gnu_getopt(list(words), _short_form(), _long_forms())
    except getopt.GetoptError as error:
        raise Refused(f"The command is not understood: {error.msg}.") from None
    command = CurlCommand()
    for option, value in options:
        name = option.lstrip("-")
        name = _SHORT.get(name, name) if len(option) == 2 else name
        if name in _REFUSED:
            raise Refused(f"The command's option {option} is not supported: {_REFUSED[name]}.")
        if name == "url":
            urls.append(value)
        else:
            _take(command, option, name, value)
    if len(urls) != 1:
        raise Refused("The command has no URL." if not urls else "The command has several URLs: give one at a time.")
    command.url = urls[0]
    if command.form and command.data is not None:
        raise Refused("The command has both a form (-F) and data (-d): a request has one body.")
    return command


def _short_form() -> str:
    with_value = {*_TAKES_VALUE.split(), *_DATA, *_IGNORED_VALUES.split(), *(_REFUSED.keys() - _REFUSED_FLAGS)}
    return _IGNORED_SHORT + "".join(f"{key}:" if name in with_value else key for key, name in _SHORT.items())


def _long_forms() -> list[str]:
    with_value = [*_TAKES_VALUE.split(), *_DATA, *_IGNORED_VALUES.split(), *(_REFUSED.keys() - _REFUSED_FLAGS)]
    return [*(f"{name}=" for name in with_value), *_FLAGS.split(), *_IGNORED.split(), *_REFUSED_FLAGS]


def _take(command: CurlCommand, option: str, name: str, value: str) -> None:
    match name:
        case "request":
            command.method = value
        case "header":
            _take_header(command, value)
        case "user-agent" | "referer":
            command.headers.append(({"user-agent": "User-Agent", "referer": "Referer"}[name], value))
        case "range":
            command.headers.append(("Range", f"bytes={value}"))
        case "oauth2-bearer":
            command.headers.append(("Authorization", f"Bearer {value}"))
        case "user":
            command.user = value
        case "cookie":
            if "=" not in value:
                raise Refused(f"The command's option {option} names a file, and files are not read.")
            command.cookie = value if command.cookie is None else f"{command.cookie}; {value}"
        case "get":
            command.as_get = True
        case "head":
            command.as_head = True
        case "url-query":
            command.queries.append(_urlencoded(option, value))
        case "form" | "form-string":
            command.form.append(_field(option, value, literal=name == "form-string"))
        case _ if name in _DATA:
            _take_data(command, option, _DATA[name], value)


def _take_header(command: CurlCommand, line: str) -> None:
    if line.startswith("@"):
        raise Refused("The command's option -H names a file (@…), and files are not read.")
    name, colon, value = line.partition(":")
    if not colon:
        # "Name;" sends a header without a value.
        name, value = line.rstrip(";"), ""
    if value.strip() or not colon:
        command.headers.append((name.strip(), value.strip()))


def _take_data(command: CurlCommand, option: str, kind: _Kind, value: str) -> None:
    if kind in ("data", "json") and value.startswith("@"):
        raise Refused(f"The command's option {option} names a file (@…), and files are not read: give its content.")
    command.is_json |= kind == "json"
    piece = _urlencoded(option, value) if kind == "urlencoded" else value
    between = "" if kind == "json" else "&"
    command.data = piece if command.data is None else f"{command.data}{between}{piece}"


def _urlencoded(option: str, value: str) -> str:
    name, equals, content = value.partition("=")
    if not equals:
        name, at, _ = value.partition("@")
        if at:
            raise Refused(f"The command's option {option} names a file (@…), and files are not read: give its content.")
        return quote_plus(value)
    return f"{name}={quote_plus(content)}" if name else quote_plus(content)


def _field(option: str, text: str, *, literal: bool) -> FormField:
    name, equals, value = text.partition("=")
    if not equals:
        raise Refused(f"The command's option {option} must say name=value.")
    if literal:
        return FormField(name, value)
    if value.startswith(("@", "<")):
        raise Refused(f"The command's option {option} names a file (@…), and files are not read.")
    if value.startswith('"'):
        value, _, rest = _unquoted(value)
    else:
        value, _, rest = value.partition(";")
    kinds = [part.strip()[5:] for part in rest.split(";") if part.strip().startswith("type=")]
    return FormField(name, value, kinds[0] if kinds else None)


def _unquoted(value: str) -> tuple[str, str, str]:
    try:
        text, end = json.JSONDecoder().raw_decode(value)
    except ValueError:
        return value, "", ""
    return str(text), ";", value[end:].lstrip(";")
