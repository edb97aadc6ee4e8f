"""One request of a collection becomes one operation: its arguments, and where its credentials go."""

from __future__ import annotations

from typing import Any

from engine.api.headers import RESERVED, header_name, header_value
from engine.api.importing.action_names import what_it_does
from engine.api.importing.argument_names import Argument, grouped, named
from engine.api.importing.examples import sounds_secret
from engine.api.importing.imported import Skipped, Unimportable
from engine.api.importing.keywords import shortened
from engine.api.importing.postman_auth import PostmanAuth
from engine.api.importing.postman_bodies import read_postman_body
from engine.api.importing.postman_collection import CollectionRequest
from engine.api.importing.postman_credentials import PostmanCredentials, authorization
from engine.api.importing.postman_entries import Entry, described, entries, header_lines
from engine.api.importing.postman_fields import described_by, field_argument
from engine.api.importing.postman_url import ReadUrl
from engine.api.importing.schemas import Written
from engine.api.operation import METHODS, Injection
from engine.api.path import VARIABLE
from engine.refusals import quoted

__all__ = ("PostmanRequest",)

_IDEMPOTENCY = frozenset({"idempotency-key", "x-idempotency-key"})
_DESCRIPTION = 500
_BODILESS = ("GET", "HEAD")
_MOST_SAID = 20
_NOT_KEPT = "it is secret, so it is not kept: it has to be given with each call, or pinned"


class PostmanRequest:
    """The import of one request.

    :ivar security: where its credentials go, once it has been read
    :ivar skipped: what of it was left out
    """

    def __init__(self, request: CollectionRequest, url: ReadUrl, credentials: PostmanCredentials) -> None:
        """Take a request whose URL has been read, and the credentials of its collection."""
        self._request = request
        self._url = url
        self._variables = request.variables
        self._credentials = credentials
        self._arguments: list[Argument] = []
        self._content_type: str | None = None
        self._idempotency: str | None = None
        self.security: tuple[Injection, ...] = ()
        self.skipped: list[Skipped] = []

    def definition(self) -> dict[str, Any]:
        """Return the operation's definition.

        :raises Refused: if it cannot be carried out as it stands, with the reason
        """
        method = self._request.method
        if method not in METHODS:
            raise Unimportable(f"the method {quoted(method[:20])} is not supported")
        self._authentication()
        self._path()
        self._query()
        self._headers()
        definition: dict[str, Any] = {
            "url": self._url.origin + self._url.path,
            "method": method,
            "description": self._description(),
            "active": True,
            **what_it_does(method),
            **self._body(),
        }
        grouped(named(self._arguments), definition)
        if self._idempotency is not None:
            definition["idempotency_header"] = self._idempotency
        return definition

    def __repr__(self) -> str:
        return f"<PostmanRequest {self._request}>"

    def _authentication(self) -> None:
        injections = PostmanAuth(self._credentials).injections(self._request.auth_json, self._variables)
        for injection in injections:
            self._secure(injection)
        if self._url.user is not None:
            user, _, password = self._url.user.partition(":")
            self._secure(self._credentials.basic(user, password, self._variables))

    def _secure(self, injection: Injection) -> None:
        """Take a credential, but for one whose place has another: the request's own authentication goes first."""
        place = injection.header or (injection.place, injection.name)
        taken = [each.header or (each.place, each.name) for each in self.security]
        if place in taken:
            what = injection.name or "Authorization"
            self._left_out(f"{injection.place} {what[:100]}", "another credential goes to its place")
            return
        self.security = (*self.security, injection)

    def _path(self) -> None:
        for name in dict.fromkeys(VARIABLE.findall(self._url.path)):
            entry = self._url.variables.get(name, Entry(name=name))
            reference = self._url.secrets.get(name)
            text = entry.text if reference is None else f"{{{{{reference}}}}}"
            expanded = self._variables.expanded(text)
            if reference is not None or expanded.is_secret or (_is_secret(name, entry) and expanded.plain):
                self._secure(self._credentials.named("path", name, text, self._variables))
                continue
            about = described_by(entry.about, expanded.plain or "")
            schema = {"type": "string", "description": about} if about else {"type": "string"}
            self._arguments.append(Argument(where="path", name=name, written=Written(schema), required=True))

    def _query(self) -> None:
        names: dict[str, list[Entry]] = {}
        for each in self._url.query:
            names.setdefault(each.name, []).append(each)
        for name, same in names.items():
            listed = [each for each in same if not each.disabled] or same[:1]
            if sounds_secret(name) or any(self._variables.expanded(each.text).is_secret for each in listed):
                if len(listed) > 1:
                    raise Unimportable(f"it sends the secret {quoted(name[:100])} several times")
                if not listed[0].disabled:
                    self._secure(self._credentials.named("query", name, listed[0].text, self._variables))
            elif not self._is_secured("query", name):
                self._arguments.append(field_argument("query", listed, self._variables).argument)

    def _is_secured(self, place: str, name: str) -> bool:
        return any((each.place, each.name) == (place, name) for each in self.security)

    def _headers(self) -> None:
        stated = self._request.request_json.get("header")
        listed = header_lines(stated) if isinstance(stated, str) else entries(stated, "list of headers")
        names: dict[str, Entry] = {}
        for each in listed:
            known = names.get(each.name.lower())
            if known is None or known.disabled or not each.disabled:
                names[each.name.lower()] = each
        for lower, entry in names.items():
            self._header(lower, entry)

    def _header(self, lower: str, entry: Entry) -> None:
        expanded = self._variables.expanded(entry.text)
        if lower == "content-type":
            self._content_type = None if entry.disabled else expanded.plain
        elif lower in _IDEMPOTENCY:
            self._idempotency = None if entry.disabled else header_name(entry.name)
        elif entry.disabled and (lower in RESERVED or sounds_secret(lower) or expanded.is_secret or lower == "accept"):
            return
        elif lower == "authorization":
            self._secure(authorization(entry.text, self._variables, self._credentials))
        elif lower in RESERVED - {"cookie"}:
            self._left_out(f"header {entry.name}", "it is written anew for each request")
        elif lower == "cookie" or sounds_secret(lower) or expanded.is_secret:
            name = header_name(entry.name)
            self._secure(self._credentials.named("header", name, entry.text, self._variables))
        elif not any(each.header == lower for each in self.security):
            self._argument_header(entry, expanded.plain)

    def _argument_header(self, entry: Entry, plain: str | None) -> None:
        name = header_name(entry.name)
        if entry.disabled or plain is None:
            argument = field_argument("header", [entry], self._variables).argument
        elif plain:
            schema = {"type": "string", "filled_by_llm": False, "value": header_value(name, plain)}
            argument = Argument(where="header", name=name, written=Written(schema))
        else:
            return
        self._arguments.append(argument)

    def _body(self) -> dict[str, str]:
        body = read_postman_body(self._request.request_json.get("body"), self._content_type, self._variables)
        if not body.arguments:
            return {}
        if self._request.method in _BODILESS:
            self._left_out("body", f"{self._request.method} is sent without one")
            return {}
        for path in body.dropped[:_MOST_SAID]:
            self._left_out(f"value of {path}", _NOT_KEPT)
        self._arguments += body.arguments
        return {} if body.content_type is None else {"body_content_type": body.content_type}

    def _left_out(self, what: str, reason: str) -> None:
        self.skipped.append(Skipped(f"{self._request}: {what}", reason))

    def _description(self) -> str:
        head = " / ".join(self._request.names)
        text = described(self._request.request_json.get("description"))
        return shortened(f"{head}\n{text}", _DESCRIPTION)


def _is_secret(name: str, entry: Entry) -> bool:
    return entry.kind == "secret" or sounds_secret(name)
