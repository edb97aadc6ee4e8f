"""Which database: a connection string, read by us alone and strictly.

Nothing comes from the environment, a password file, a service file or a certificate file, as libpq and its kin would
have it: such a string is a row's, and the files and variables are the operator's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Literal, TypeAlias, cast, get_args
from urllib.parse import unquote

import msgspec

from engine.sql.errors import SqlError

__all__ = ("Dsn", "SslMode")

SslMode: TypeAlias = Literal["disable", "allow", "prefer", "require", "verify-ca", "verify-full"]

_LONGEST: Final = 4096
_SCHEME: Final = re.compile(r"postgres(ql)?(\+[a-z0-9]+)?", re.IGNORECASE)
_PORT: Final = re.compile(r"[0-9]{1,5}")
_PAIR: Final = re.compile(r"\s*([a-z_]+)\s*=\s*('(?:[^'\\]|\\.)*'|(?:[^\s'\\]|\\.)*)(?=\s|$)", re.ASCII | re.DOTALL)
_ALIASES: Final = {"database": "dbname", "username": "user"}
_TAKEN: Final = frozenset({"host", "port", "user", "password", "dbname", "sslmode", "application_name"})
_ONLY: Final[dict[str, tuple[str, ...]]] = {
    "channel_binding": ("disable", "prefer", "require"),
    "gssencmode": ("disable", "prefer"),
    "sslnegotiation": ("postgres",),
    "sslrootcert": ("system",),
    "target_session_attrs": ("any",),
}
"""Options that are taken with these values alone."""
_NUMBERS: Final = frozenset(
    {"connect_timeout", "keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout"}
)
_KNOWN: Final = frozenset(
    {
        *("hostaddr", "options", "passfile", "service", "servicefile", "requirepeer", "require_auth", "replication"),
        *("sslcert", "sslkey", "sslpassword", "sslcrl", "sslcrldir", "sslcertmode", "sslsni", "sslcompression"),
        *("ssl_min_protocol_version", "ssl_max_protocol_version", "requiressl", "client_encoding", "pgbouncer"),
        *("krbsrvname", "krb_srvname", "gsslib", "gssdelegation", "load_balance_hosts", "fallback_application_name"),
    }
)
"""Options that are refused by name. No other is named, for a part of a password may stand where one should."""


class Dsn(msgspec.Struct, frozen=True, kw_only=True):
    """Where a database is, and as whom to go there.

    :ivar host: a name in lower case, or an address without brackets; never a socket's path
    :ivar sslmode: None: the string does not say
    :ivar connect_timeout: seconds; 0: the string does not say
    """

    host: str
    port: int
    user: str
    password: str
    database: str
    sslmode: SslMode | None = None
    application_name: str = "calljournal"
    connect_timeout: int = 0

    def __repr__(self) -> str:
        return f"<Dsn {self.masked()}>"

    def masked(self) -> str:
        """Return it as a URL without user and password."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        mode = f"?sslmode={self.sslmode}" if self.sslmode else ""
        return f"postgresql://***:***@{host}:{self.port}/{self.database}{mode}"

    @classmethod
    def of(cls, text: str) -> Dsn:
        """Read ``postgresql://user:password@host:5432/database?sslmode=…``, or ``host=… user=…`` between spaces.

        :raises SqlError: if it is neither, or has anything but what is taken; nothing of it is quoted
        """
        text = text.strip()
        if not text:
            raise SqlError("The connection string is missing.")
        if len(text) > _LONGEST or not _is_plain(text):
            raise SqlError(f"The connection string must be one line of at most {_LONGEST} characters.")
        pairs = _of_url(text) if "://" in text else _of_words(text)
        return _made(_checked(pairs))


def _of_url(text: str) -> Iterator[tuple[str, str]]:
    scheme, _, rest = text.partition("://")
    if not _SCHEME.fullmatch(scheme):
        raise SqlError("The connection string must begin with postgresql://.")
    place, mark, query = rest.partition("?")
    authority, _, database = place.partition("/")
    userinfo, at, hosts = authority.rpartition("@")
    user, colon, password = userinfo.partition(":")
    if at:
        yield "user", _decoded(user)
    if colon:
        yield "password", _decoded(password)
    yield from _of_host(hosts)
    if database:
        yield "dbname", _decoded(database)
    for pair in query.split("&") if mark and query else ():
        name, equals, value = pair.partition("=")
        if not equals:
            raise SqlError("The connection string has an option without a value.")
        yield _decoded(name), _decoded(value)


def _of_host(text: str) -> Iterator[tuple[str, str]]:
    if not text:
        return
    if "%" in text:
        raise SqlError("The host in the connection string must be a plain name or address.")
    match = re.fullmatch(r"\[([^\[\]]*)\](?::(.*))?|([^:]*)(?::(.*))?", text)
    if match is None:
        raise SqlError("The host in the connection string must be a name or an address, IPv6 in brackets, then a port.")
    host, port = match[1] or match[3], match[2] if match[1] else match[4]
    if host:
        yield "host", host
    if port:
        yield "port", port


def _of_words(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(text):
        match = _PAIR.match(text, at)
        if match is None:
            raise SqlError("The connection string must be a postgresql:// URL, or say host=… user=… dbname=….")
        value = match[2]
        value = value[1:-1] if value.startswith("'") else value
        yield match[1], re.sub(r"\\(.)", r"\1", value)
        at = match.end()


def _decoded(text: str) -> str:
    try:
        decoded = unquote(text, errors="strict")
    except UnicodeDecodeError:
        decoded = "\0"
    if not _is_plain(decoded):
        raise SqlError("The connection string has an escape (%…) that stands for no character.")
    return decoded


def _is_plain(text: str) -> bool:
    """Tell whether a text can be sent as it is; a zero byte would end it, and begin another setting."""
    return not any(ord(each) < 32 or each == "\x7f" or 0xD800 <= ord(each) < 0xE000 for each in text)


def _checked(pairs: Iterator[tuple[str, str]]) -> dict[str, str]:
    options: dict[str, str] = {}
    for name, value in pairs:
        name = _ALIASES.get(name, name)
        if name in options:
            raise SqlError(f"The connection string says {name} twice.")
        if name not in _TAKEN and name not in _ONLY and name not in _NUMBERS:
            raise SqlError(f"The connection string has {_named(name)}, which is not taken. {_taken()}")
        if name in _ONLY and value not in _ONLY[name]:
            raise SqlError(f"Of the option {name} only {' or '.join(_ONLY[name])} is taken.")
        if name in _NUMBERS and not re.fullmatch(r"[0-9]{1,9}", value):
            raise SqlError(f"The option {name} must be a whole number.")
        options[name] = value
    return options


def _named(name: str) -> str:
    return f"the option {name!r}" if name in _KNOWN else "an option that is not known"


def _taken() -> str:
    return f"Taken are {', '.join(sorted(_TAKEN | _NUMBERS | set(_ONLY)))}."


def _made(options: dict[str, str]) -> Dsn:
    host, user = options.get("host", ""), options.get("user", "")
    if not host or host.startswith(("/", "@", ".")) or "," in host or "\\" in host:
        raise SqlError("The connection string must name one host, by name or address: no socket, and no list.")
    if not user:
        raise SqlError("The connection string must name a user.")
    port, mode = options.get("port", "5432"), options.get("sslmode")
    if not _PORT.fullmatch(port) or not 0 < int(port) < 65536:
        raise SqlError("The port in the connection string must be a number from 1 to 65535.")
    if mode is not None and mode not in get_args(SslMode):
        raise SqlError(f"sslmode must be one of {', '.join(get_args(SslMode))}.")
    if options.get("channel_binding") == "require" or options.get("sslrootcert") == "system":
        # What either protects against, somebody in between, is kept out by the certificate's name.
        mode = "verify-full"
    return Dsn(
        host=host.lower().removesuffix("."),
        port=int(port),
        user=user,
        password=options.get("password", ""),
        database=options.get("dbname") or user,
        sslmode=cast("SslMode | None", mode),
        application_name=options.get("application_name") or "calljournal",
        connect_timeout=int(options.get("connect_timeout", "0")),
    )
