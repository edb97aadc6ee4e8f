"""Which MCP server a row is for, how it is reached, and as whom."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, Final, Literal, cast, get_args
from urllib.parse import parse_qsl, urlsplit

import msgspec

from engine.mcp.errors import InvalidServer

__all__ = ("Approval", "AuthType", "Server", "TransportType")

AuthType = Literal["none", "bearer", "oauth", "api_key", "basic"]
TransportType = Literal["auto", "http", "sse"]
Approval = Literal["annotations", "always", "never"]

_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_SECRET_NAME: Final = re.compile(r"auth|key|token|secret|cookie|passw", re.IGNORECASE)
_OURS: Final = ("host", "content-length", "content-type", "accept", "connection", "transfer-encoding")
_OUR_PREFIX: Final = "mcp-"
_NEEDED: Final = {"bearer": ("bearer_token",), "api_key": ("api_key",), "basic": ("username", "password")}
_PROCESS: Final = ("command", "args", "env", "cwd")


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """One server as one row reaches it. Its ``repr`` shows no credentials.

    :ivar transport: what is spoken: streamable HTTP, or the older SSE
    :ivar headers: sent with every request, those that authenticate included
    :ivar secrets: the credentials by name
    :ivar timeout: seconds for a call
    :ivar approval: which of its actions need a person's approval: by their annotations, all, or none
    :ivar surfaces: its resources and prompts are actions too
    """

    url: str
    transport: Literal["http", "sse"]
    auth: AuthType
    headers: tuple[tuple[str, str], ...] = ()
    secrets: tuple[tuple[str, str], ...] = ()
    timeout: float = 30.0
    approval: Approval = "annotations"
    surfaces: bool = False

    @staticmethod
    def of(config: Mapping[str, Any]) -> Server:
        """Read a row's configuration, its credentials merged in.

        :raises InvalidServer: if it names no server that can be reached, or a program to start
        """
        _refuse_programs(config)
        url = _url(config.get("server_url"))
        auth = _choice(config, "auth_type", AuthType, "none")
        secrets = {**_texts(config.get("auth_credentials")), **_texts(config)}
        needed = _NEEDED.get(auth, ())
        missing = [name for name in needed if not secrets.get(name)]
        if missing:
            raise InvalidServer(f"auth_type {auth} needs {' and '.join(missing)}; set it among the row's credentials")
        return Server(
            url=url,
            transport=_transport(_choice(config, "transport_type", TransportType, "auto"), url),
            auth=cast("AuthType", auth),
            headers=_headers(config),
            secrets=tuple((name, secrets[name]) for name in needed),
            timeout=_timeout(config.get("timeout")),
            approval=cast("Approval", _choice(config, "approval", Approval, "annotations")),
            surfaces=config.get("resources") is True,
        )

    @staticmethod
    def problems_of(config: Mapping[str, Any]) -> list[str]:
        """Return what is wrong with a row's configuration, its credentials merged in, before it is stored."""
        try:
            server = Server.of(config)
        except InvalidServer as error:
            return [str(error)]
        if "server_url" in _texts(config.get("auth_credentials")):
            return []
        # All who may use the row see its configuration.
        named = [name for name, _ in parse_qsl(urlsplit(server.url).query) if _SECRET_NAME.search(name)]
        return [f"server_url has {name!r}, which sounds like a secret: give server_url as a secret" for name in named]

    def __repr__(self) -> str:
        return f"<Server {self.address} {self.transport} auth={self.auth}>"

    @property
    def address(self) -> str:
        """The host and port, and nothing else of the URL."""
        parts = urlsplit(self.url)
        return parts.netloc.rpartition("@")[2]

    @property
    def host(self) -> str:
        """The host's name."""
        return urlsplit(self.url).hostname or ""

    @property
    def port(self) -> int:
        """The port, the scheme's usual one where the URL names none."""
        parts = urlsplit(self.url)
        return parts.port or (443 if parts.scheme == "https" else 80)

    @property
    def credentials(self) -> dict[str, str]:
        """The credentials by name, those in headers of the row's own too."""
        named = {name: value for name, value in self.headers if _SECRET_NAME.search(name)}
        return {**named, **dict(self.secrets)}

    @property
    def digest(self) -> str:
        """A SHA-256 over all that decides whom the server takes a session for; none of it can be read back."""
        material = [self.url, self.transport, self.auth, sorted(self.headers), sorted(self.secrets)]
        return hashlib.sha256(json.dumps(material).encode()).hexdigest()


def _refuse_programs(config: Mapping[str, Any]) -> None:
    named = [key for key in _PROCESS if config.get(key)]
    if named or config.get("transport_type") == "stdio":
        what = ", ".join(named) or "transport_type stdio"
        raise InvalidServer(f"an MCP server is never started as a program here ({what}); give the URL of one that runs")


def _url(stated: Any) -> str:
    if not isinstance(stated, str) or not stated.strip():
        raise InvalidServer("server_url is missing; give the server's URL, with https://")
    url = stated.strip()
    try:
        parts = urlsplit(url)
        bad = parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0
    except ValueError:
        bad, parts = True, urlsplit("")
    if bad:
        raise InvalidServer("server_url is no URL with http:// or https:// and a host")
    if "@" in parts.netloc:
        raise InvalidServer("server_url carries a user name or password; set auth_type basic and the credentials")
    return url


def _transport(stated: str, url: str) -> Literal["http", "sse"]:
    if stated == "auto":
        # By the path's last part alone: many a host's name has these letters.
        return "sse" if urlsplit(url).path.rstrip("/").rpartition("/")[2] == "sse" else "http"
    return "sse" if stated == "sse" else "http"


def _choice(config: Mapping[str, Any], key: str, choices: Any, default: str) -> str:
    stated = config.get(key)
    if stated is None or stated == "":
        return default
    if stated not in get_args(choices):
        raise InvalidServer(f"{key} {str(stated)[:40]!r} is not known; use one of {', '.join(get_args(choices))}")
    return str(stated)


def _timeout(stated: Any) -> float:
    if stated is None or stated == "":
        return 30.0
    try:
        seconds = float(stated)
    except (TypeError, ValueError):
        seconds = 0.0
    if isinstance(stated, bool) or not 1 <= seconds <= 300:
        raise InvalidServer("timeout must be 1 to 300 seconds")
    return seconds


def _texts(config: Any) -> dict[str, str]:
    return {key: each for key, each in config.items() if isinstance(each, str)} if isinstance(config, Mapping) else {}


def _headers(config: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    stated = config.get("headers") or {}
    if not isinstance(stated, Mapping):
        raise InvalidServer("headers must be an object of names and values")
    headers = [*stated.items()]
    if config.get("auth_type") == "api_key":
        headers.append((config.get("api_key_header") or "X-API-Key", config.get("api_key") or ""))
    return tuple((_header_name(name), _header_value(name, value)) for name, value in headers)


def _header_name(name: Any) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidServer(f"{str(name)[:40]!r} is no name of a header")
    if name.lower() in _OURS or name.lower().startswith(_OUR_PREFIX):
        raise InvalidServer(f"the header {name} is the protocol's own; leave it out")
    return name


def _header_value(name: Any, value: Any) -> str:
    text = value if isinstance(value, str) else str(value)
    if not _VALUE.fullmatch(text):
        raise InvalidServer(f"the value of the header {str(name)[:40]} holds characters that no header may")
    return text
