"""A curl command becomes one action of an api_tool; secrets in it are told apart (docs/api_import.md)."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

import msgspec

from engine.api.headers import RESERVED
from engine.api.importing.action_names import Call, action_names, what_it_does
from engine.api.importing.argument_names import Argument, Where, grouped, named
from engine.api.importing.curl_command import CurlCommand, read_command
from engine.api.importing.curl_words import curl_words
from engine.api.importing.examples import example_of, is_placeholder, sounds_secret
from engine.api.importing.imported import Imported, Skipped, check_action
from engine.api.importing.schemas import Written
from engine.api.importing.security import secret_name
from engine.api.media import FORM, JSON, MULTIPART, MediaType
from engine.api.operation import Injection
from events.errors import Refused

__all__ = ("import_curl",)

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9_-]*) +(\S+)")
_GLOB = re.compile(r"\{[^{}]*,[^{}]*\}|\[[^\[\]]*-[^\[\]]*\]")


def import_curl(text: str) -> Imported:
    """Return the one action that a curl command describes. Nothing is run or read.

    What the command sends is what the action sends where a call says nothing else; its headers are fixed. Secrets
    (``Authorization``, ``-u``, cookies, a user name and password in the URL, and headers, query parameters and
    fields whose names sound secret) are no part of the action: they are credentials, and their values stand in
    ``secrets``, for those that can be put back at all.

    :raises Refused: if it is no single curl command that can be kept to, with the reason; no value is shown
    """
    return _CurlImport(read_command(curl_words(text))).run()


class _CurlImport:
    """The import of one command."""

    def __init__(self, command: CurlCommand) -> None:
        self._command = command
        self._arguments: list[Argument] = []
        self._security: list[Injection] = []
        self._secrets: dict[str, str] = {}
        self._required: dict[str, dict[str, Any]] = {}
        self._skipped: list[Skipped] = []
        self._content_type: str | None = None

    def run(self) -> Imported:
        """Return what the command amounts to."""
        command = self._command
        url, query = self._url()
        for name, value in command.headers:
            self._header(name, value)
        if command.user is not None:
            self._basic(*command.user.partition(":")[::2])
        if command.cookie is not None:
            self._secret("header", "Cookie", command.cookie)
        parts = [query, *command.queries, *([command.data] if command.as_get and command.data is not None else [])]
        self._pairs("query", "&".join(part for part in parts if part))
        body = self._body()
        parts_of_url = urlsplit(url)
        for variable in dict.fromkeys(re.findall(r"\{([^{}]+)\}", parts_of_url.path)):
            written = Written({"type": "string"})
            self._arguments.append(Argument(where="path", name=variable, written=written, required=True))
        definition = {
            "url": url,
            "method": command.verb,
            "description": f"{command.verb} {parts_of_url.hostname}{parts_of_url.path}"[:500],
            "active": True,
            **what_it_does(command.verb),
            **body,
        }
        grouped(named(self._arguments), definition)
        check_action(definition, self._security)
        (action,) = action_names([Call(command.verb, parts_of_url.path)])
        return Imported(
            title=parts_of_url.hostname or "",
            base_url=f"{parts_of_url.scheme}://{parts_of_url.netloc}",
            actions={action: definition},
            requirements=self._required,
            security=tuple(self._security),
            skipped=tuple(self._skipped),
            secrets=self._secrets,
        )

    def _url(self) -> tuple[str, str]:
        """Return the URL without what is told apart, and its query."""
        stated = self._command.url
        if _GLOB.search(stated):
            raise Refused("The command's URL has a {list} or a [range]: write out one URL.")
        try:
            parts = urlsplit(stated if "://" in stated else f"http://{stated}")
            _ = parts.port
        except ValueError:
            raise Refused("The command's URL is not valid.") from None
        user, at, host = parts.netloc.rpartition("@")
        if at:
            self._basic(*map(unquote, user.partition(":")[::2]))
        path = parts.path.replace(" ", "%20")
        return urlunsplit((parts.scheme.lower(), host, path, "", "")), parts.query

    def _header(self, name: str, value: str) -> None:
        lower = name.lower()
        if lower == "authorization":
            self._authorization(value)
        elif lower == "content-type":
            self._content_type = MULTIPART if MediaType.of(value).name == MULTIPART else value
        elif lower == "cookie":
            self._secret("header", "Cookie", value)
        elif lower in RESERVED:
            self._skipped.append(Skipped(f"header {name}", "it is written anew for each request"))
        elif sounds_secret(name):
            self._secret("header", name, value)
        elif value:
            schema = {"type": "string", "filled_by_llm": False, "value": value}
            self._arguments.append(Argument(where="header", name=name, written=Written(schema)))

    def _authorization(self, value: str) -> None:
        found = _SCHEME.fullmatch(value)
        scheme, credential = (found[1], found[2]) if found else ("", value)
        if scheme.lower() == "basic" and (pair := _unpacked(credential)) is not None:
            self._basic(*pair)
        elif scheme.lower() == "bearer":
            self._take(Injection(secret=self._named("token"), place="bearer"), credential, "The bearer token.")
        else:
            prefix = f"{scheme} " if scheme else ""
            about = "The value of the Authorization header."
            injection = Injection(
                secret=self._named("authorization"), place="header", name="Authorization", prefix=prefix
            )
            self._take(injection, credential, about)

    def _basic(self, user: str, password: str) -> None:
        if any(each.header == "authorization" for each in self._security):
            self._skipped.append(Skipped("user name and password", "the Authorization header goes before them"))
            return
        self._security.append(Injection(place="basic"))
        for name, value, about in (("username", user, "The user name."), ("password", password, "The password.")):
            self._keep(name, value, about)

    def _secret(self, place: str, name: str, value: str) -> None:
        injection = msgspec.convert({"secret": self._named(name), "in": place, "name": name}, Injection)
        if any((each.place, each.name.lower()) == (place, name.lower()) for each in self._security):
            raise Refused(f"The command sets the {place} {name} twice.")
        self._take(injection, value, f"The value of the {place} {name}.")

    def _named(self, name: str) -> str:
        return secret_name(name, {*self._required, "username", "password"})

    def _take(self, injection: Injection, value: str, about: str) -> None:
        if injection.header == "authorization" and any(each.header == "authorization" for each in self._security):
            raise Refused("The command has two credentials for the Authorization header.")
        self._security.append(injection)
        self._keep(injection.secret, value, about)

    def _keep(self, name: str, value: str, about: str) -> None:
        self._required[name] = {"type": "string", "description": about, "required": True, "secret": True}
        if value and not is_placeholder(value):
            self._secrets[name] = value

    def _pairs(self, where: Where, text: str) -> None:
        values: dict[str, list[str]] = {}
        for name, value in parse_qsl(text, keep_blank_values=True):
            values.setdefault(name, []).append(value)
        for name, listed in values.items():
            if where == "query" and sounds_secret(name) and len(listed) == 1:
                self._secret("query", name, listed[0])
            else:
                self._field(where, name, listed[0] if len(listed) == 1 else listed, from_text=True)

    def _field(
        self, where: Where, name: str, value: Any, *, from_text: bool = False, kind: str = "", whole: bool = False
    ) -> None:
        example = example_of(name, value, from_text=from_text)
        for path in example.dropped:
            reason = "its name sounds secret, so its value is not kept: it has to be given with each call, or pinned"
            self._skipped.append(Skipped(f"value of {path}", reason))
        rule = {"contentType": kind} if kind else {}
        self._arguments.append(
            Argument(where=where, name=name, written=Written(example.preset), encoding_json=rule, whole=whole)
        )

    def _body(self) -> dict[str, str]:
        """Take the body's arguments and return what the action says of its type."""
        command = self._command
        if command.form:
            for name in dict.fromkeys(field.name for field in command.form):
                fields = [field for field in command.form if field.name == name]
                kind = fields[0].content_type
                values = [_of_type(field.value, kind) for field in fields]
                self._field("body", name, values[0] if len(values) == 1 else values, kind=kind or "")
            return {"body_content_type": MULTIPART}
        if not command.data or command.as_get:
            return {}
        data, stated = command.data, self._content_type
        content_type = stated or (JSON if command.is_json or _looks_like_json(data) else FORM)
        media = MediaType.of(content_type)
        if media.is_json:
            self._json(data)
        elif media.name == FORM:
            if "=" not in data:
                raise Refused("The command's data is no form (name=value): say what it is with a Content-Type header.")
            self._pairs("body", data)
        elif media.name == MULTIPART:
            raise Refused("The command's data is a multipart form written out: give its fields with -F.")
        else:
            self._field("body", "body", data, whole=True)
        return {} if content_type == JSON else {"body_content_type": content_type}

    def _json(self, data: str) -> None:
        try:
            value = msgspec.json.decode(data)
        except (msgspec.DecodeError, RecursionError):
            raise Refused("The command's data is not valid JSON, though it is sent as such.") from None
        if not isinstance(value, dict) or not value:
            self._field("body", "body", value, whole=True)
            return
        for name, item in value.items():
            self._field("body", name, item)


def _looks_like_json(data: str) -> bool:
    if not data.lstrip().startswith(("{", "[")):
        return False
    try:
        msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _of_type(text: str, content_type: str | None) -> Any:
    if content_type is None or not MediaType.of(content_type).is_json:
        return text
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        raise Refused("A field of the command's form is not valid JSON, though it says so.") from None


def _unpacked(credential: str) -> tuple[str, str] | None:
    try:
        user, colon, password = base64.b64decode(credential, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return None
    return (user, password) if colon else None
