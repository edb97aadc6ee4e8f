"""Operations: what a row of api_tool says of one HTTP call, read and checked (docs/api_tool.md has the form)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import unquote, urlsplit

import msgspec

from engine.api.client_credentials import ClientAuth, scope_fault, token_url_fault
from engine.api.media import MediaType
from engine.api.origins import origin_of, url_fault
from engine.api.pages import Pages
from engine.opened_rows import CREDENTIALS, LEGACY
from engine.pacing.rate import Rate
from engine.refusals import quoted
from events.errors import Refused

__all__ = (
    "METHODS",
    "SETTINGS",
    "EncodingRule",
    "Injection",
    "Operation",
    "Place",
    "Style",
    "Wire",
    "Wires",
    "compiled",
)

METHODS: Final = ("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS")
"""The methods that may be used."""

Style: TypeAlias = Literal["form", "simple", "label", "matrix", "spaceDelimited", "pipeDelimited", "deepObject"]
Place: TypeAlias = Literal["path", "query", "cookie"]

_SAFE_ALWAYS: Final = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})
_AUTHORIZATION: Final = frozenset({"bearer", "basic", "oauth2"})
_REFERENCES: Final = 10
_VARIABLE: Final = re.compile(r"\{([^{}]*)\}")


class EncodingRule(msgspec.Struct, frozen=True, kw_only=True):
    """How one argument of a form is written.

    :ivar content_type: its own, or several between commas; in JSON ``contentType``
    :ivar file: it is a file: base64, or ``{"content": base64, "filename", "content_type"}``
    """

    style: Style | None = None
    explode: bool | None = None
    content_type: str | None = msgspec.field(name="contentType", default=None)
    file: bool = False

    @property
    def written_type(self) -> str | None:
        """The content type that is written: the first that names one type; None: there is none."""
        listed = [each.strip() for each in (self.content_type or "").split(",")]
        return next((each for each in listed if each and "*" not in each), None)


class Wire(msgspec.Struct, frozen=True, kw_only=True):
    """What an argument is on the wire, as far as it differs from what its group and its name say.

    :ivar name: what it is called there; None: as the argument
    :ivar place: of an argument in ``query_params``; None: in the path where the URL names it, else in the query
    """

    name: str | None = None
    place: Place | None = msgspec.field(name="in", default=None)
    style: Style | None = None
    explode: bool | None = None
    content_type: str | None = msgspec.field(name="contentType", default=None)


class Wires(msgspec.Struct, frozen=True, kw_only=True):
    """The wire forms of the arguments of each group."""

    query_params: dict[str, Wire] = {}
    headers: dict[str, Wire] = {}
    body: dict[str, Wire] = {}


class Injection(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A credential's place in a request. Its value is the row's secret of that name, and is put in when it is sent.

    Of ``oauth2`` it is an access token, which the client's id and secret are exchanged for (RFC 6749, 4.4).

    :ivar secret: the secret's name; of ``basic`` that is not read: it takes ``username`` and ``password``
    :ivar name: of the header, the query parameter, the cookie, or the variable in the URL's path
    :ivar prefix: written before the value
    :ivar token_url: of ``oauth2``, as are all below: where tokens are given; literal
    :ivar client_id: the name of the secret that holds the client's id
    :ivar client_secret: the name of the secret that holds the client's secret
    :ivar scopes: to ask for; none: those that the server gives by itself
    """

    secret: str = ""
    place: Literal["header", "query", "cookie", "path", "bearer", "basic", "oauth2"] = msgspec.field(name="in")
    name: str = ""
    prefix: str = ""
    token_url: str = ""
    client_id: str = ""
    client_secret: str = ""
    scopes: tuple[str, ...] = ()
    audience: str = ""
    resource: str = ""
    client_auth: ClientAuth = "basic"

    @property
    def secrets(self) -> tuple[str, ...]:
        """The names of the secrets it takes."""
        if self.place == "oauth2":
            return (self.client_id, self.client_secret)
        return ("username", "password") if self.place == "basic" else (self.secret,)

    @property
    def header(self) -> str | None:
        """The header it fills, in lower case; None: it fills none."""
        if self.place == "header":
            return self.name.lower()
        return "cookie" if self.place == "cookie" else "authorization" if self.place in _AUTHORIZATION else None


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One HTTP call as configured, without the values of a call.

    :ivar url: absolute; ``{name}`` in its path or query is filled from the arguments in ``query_params``
    :ivar body_content_type: None: the body, if there is one, is JSON
    :ivar body_whole: the argument that is the body itself, whatever its kind
    :ivar files: arguments of the body whose text is base64 of bytes
    :ivar idempotency_header: carries the call's idempotency key
    :ivar project: a JMESPath expression, applied to a response's JSON
    :ivar body_root: the outermost element of an XML body
    :ivar pages: how its responses lead from one to the next; None: each stands alone
    :ivar rate: how often it may be called, for all who call it together
    :ivar trusted_origins: the only ones that its credentials go to; None: its own URL's (see ``engine.api.origins``)
    """

    url: str
    method: str = "GET"
    body_content_type: str | None = None
    body_encoding_rules: dict[str, EncodingRule] = {}
    wire: Wires = Wires()
    body_whole: str | None = None
    body_root: str = "root"
    files: frozenset[str] = frozenset()
    security: tuple[Injection, ...] = ()
    idempotency_header: str | None = None
    idempotent: bool = False
    project: str | None = None
    pages: Pages | None = None
    rate: Rate | None = None
    trusted_origins: tuple[str, ...] | None = None

    @staticmethod
    def of(definition: dict[str, Any]) -> Operation:
        """Read an operation from its JSON form; what it says beyond that is left alone.

        :raises Refused: if it cannot be carried out as it stands, with the reason
        """
        body = definition.get("body")
        group = body if isinstance(body, dict) else {}
        files = sorted(name for name, schema in (group.get("properties") or {}).items() if _is_file(schema, group))
        method = definition.get("method") or "GET"
        if not isinstance(method, str) or method.upper() not in METHODS:
            raise Refused(f"Unsupported HTTP method: {method}")
        stated = {key: item for key, item in definition.items() if item is not None}
        try:
            operation = msgspec.convert({**stated, "method": method.upper(), "files": files}, Operation)
        except msgspec.ValidationError as error:
            raise Refused(f"The action's configuration is not valid: {error}.") from None
        _check_url(operation)
        _check_security(operation)
        if operation.project is not None:
            compiled(operation.project)
        if operation.pages is not None:
            claimed = {injection.name for injection in operation.security if injection.place == "query"}
            operation.pages.check(operation.method, compiled, claimed)
        return operation

    @property
    def origin(self) -> str:
        """Scheme, host and port, as origins are compared: the only place that its requests go to."""
        return origin_of(self.url)

    @property
    def destinations(self) -> tuple[str, ...]:
        """The URLs that its credentials go to: its own, and where tokens are given; none, if it takes none."""
        tokens = [each.token_url for each in self.security if each.token_url]
        return (self.url, *tokens) if self.security else ()

    @property
    def may_be_repeated(self) -> bool:
        """Whether running it twice is as good as once: by its method, by its owner's word, or by a key it sends."""
        return self.method in _SAFE_ALWAYS or self.idempotent or self.idempotency_header is not None

    def __repr__(self) -> str:
        return f"<Operation {self.method} {self.url}>"


SETTINGS: Final = frozenset(
    {*Operation.__struct_fields__, "query_params", "headers", "body", "query_schema", "actions", CREDENTIALS, LEGACY}
)
"""Names of settings, which no credential may have: a tool finds both in one configuration."""


@lru_cache(maxsize=256)
def compiled(expression: str) -> Any:
    """Return a compiled JMESPath expression. :raises Refused: if it is none"""
    import jmespath

    try:
        return jmespath.compile(expression)
    except jmespath.exceptions.JMESPathError as error:
        reason = str(error).splitlines()[0]
        raise Refused(f"The action's projection {quoted(expression)} is no JMESPath: {reason}") from None


def _is_file(schema: Any, group: dict[str, Any]) -> bool:
    """Tell whether a property of a body is a file, or a list of them."""
    for _ in range(_REFERENCES):
        if not isinstance(schema, dict):
            return False
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference.startswith("#/$defs/"):
            schema = (group.get("$defs") or {}).get(reference.removeprefix("#/$defs/"))
        elif isinstance(schema.get("items"), dict):
            schema = schema["items"]
        else:
            media = MediaType.of(schema.get("contentMediaType"))
            return schema.get("format") == "binary" or schema.get("contentEncoding") == "base64" or media.is_bytes
    return False


def _check_url(operation: Operation) -> None:
    if fault := url_fault(operation.url):
        raise Refused(f"The action's URL {fault}.")
    parts = urlsplit(operation.url)
    if any(unquote(segment) in (".", "..") for segment in parts.path.split("/")):
        raise Refused('The action\'s URL has "." or ".." as a path segment: write out where it leads.')
    left = _VARIABLE.sub("", parts.path + parts.query)
    if "{" in left or "}" in left or "" in _VARIABLE.findall(parts.path + parts.query):
        raise Refused("The action's URL has a brace that is no {variable}.")


def _check_security(operation: Operation) -> None:
    variables = set(_VARIABLE.findall(urlsplit(operation.url).path))
    for injection in operation.security:
        if injection.place in ("header", "query", "cookie", "path") and not injection.name:
            raise Refused(f"A credential of the action goes into a {injection.place} but says no name for it.")
        if not all(injection.secrets):
            raise Refused("A credential of the action does not say which secret it is.")
        if injection.place == "path" and injection.name not in variables:
            raise Refused(f"The action's URL has no {{{injection.name}}} for its credential.")
        if injection.place == "oauth2":
            _check_oauth(injection, operation)


def _check_oauth(injection: Injection, operation: Operation) -> None:
    if fault := token_url_fault(injection.token_url):
        raise Refused(f"The token_url of the action's credentials {fault}.")
    if fault := scope_fault(injection.scopes):
        raise Refused(f"Of the scopes of the action's credentials {fault}.")
    if len([each for each in operation.security if each.header == "authorization"]) > 1:
        raise Refused("The action has two credentials for the Authorization header, one of them an oauth2 token.")
