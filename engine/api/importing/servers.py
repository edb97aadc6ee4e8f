"""Where a document's operations are sent: servers, their variables, and what stands in for relative ones."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urljoin, urlsplit, urlunsplit

import msgspec

from engine.api.importing.imported import Unimportable
from engine.refusals import quoted
from events.errors import Refused

__all__ = ("Servers",)

_VARIABLE = re.compile(r"\{([^{}]*)\}")


class _Variable(msgspec.Struct):
    default: str | int | float | bool | None = None
    enum: list[str | int | float | bool] = []


class _Server(msgspec.Struct):
    url: str
    variables: dict[str, _Variable] = {}


class Servers:
    """Chooses among the servers that a document, a path and an operation list; the innermost list counts."""

    def __init__(self, base_url: str | None) -> None:
        """Take what relative URLs are relative to; it stands in as well where a list has no server that can be called.

        :raises Refused: if it is no absolute http or https URL
        """
        if base_url is not None and (fault := _fault(base_url)):
            raise Refused(f"base_url {fault}.")
        self._base_url = base_url

    def chosen(self, *lists: Any) -> str:
        """Return the URL of the first server of the innermost list that can be called, without a slash at its end.

        :param lists: innermost first; what is empty or no list says nothing, and a URL that is "/" is the base's
        :raises Unimportable: if none can be called, with what is wrong with the first
        """
        listed = next((each for each in lists if isinstance(each, list) and each), None)
        if listed is None:
            if self._base_url is None:
                raise Unimportable("the document names no server: give base_url")
            return self._base_url.rstrip("/")
        faults = []
        for server in listed:
            try:
                return self._url(server)
            except Unimportable as error:
                faults.append(str(error))
        if self._base_url is not None:
            return self._base_url.rstrip("/")
        raise Unimportable(faults[0])

    def _url(self, stated: Any) -> str:
        try:
            server = msgspec.convert(stated, _Server, strict=False)
        except msgspec.ValidationError as error:
            raise Unimportable(f"its server is not valid: {error}") from None
        url = _VARIABLE.sub(lambda found: _value(server, found[1]), server.url.strip())
        if url in ("", "/") and self._base_url is not None:
            return self._base_url.rstrip("/")
        if url.startswith("//"):
            url = f"{urlsplit(self._base_url or 'https:').scheme}:{url}"
        elif self._base_url is not None and not _has_scheme(url):
            url = urljoin(self._base_url, url)
        elif not _has_scheme(url):
            raise Unimportable(f"its server's URL {quoted(url[:200])} is relative: give base_url")
        if fault := _fault(url):
            raise Unimportable(f"its server's URL {fault}")
        parts = urlsplit(url)
        return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))


def _value(server: _Server, name: str) -> str:
    variable = server.variables.get(name)
    value = None if variable is None else variable.default
    if value is None and variable is not None and variable.enum:
        value = variable.enum[0]
    if value is None:
        raise Unimportable(f"its server's URL has the variable {quoted(name)} without a default: give base_url")
    return str(value)


def _has_scheme(url: str) -> bool:
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", url) is not None


def _fault(url: str) -> str | None:
    """Return what is wrong with an absolute URL; the text never holds a user name or password."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return "is no valid URL"
    if parts.scheme not in ("http", "https"):
        return f"has the scheme {quoted(parts.scheme)}; http and https are supported"
    if not parts.hostname:
        return "has no host"
    if "@" in parts.netloc:
        return "carries a user name or password: give it as a credential"
    if parts.query or parts.fragment:
        return "has a query or a fragment"
    return None
