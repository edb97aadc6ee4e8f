"""OpenAPI 3.0, 3.1 and Swagger 2.0 documents become the actions of an api_tool (docs/api_import.md)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from engine.api.importing.action_names import Call, action_names, what_it_does
from engine.api.importing.argument_names import Argument, grouped, named
from engine.api.importing.imported import Imported, Skipped, Unimportable, check_action, injection_json
from engine.api.importing.keywords import shortened
from engine.api.importing.reading import Source, read_content, source_of
from engine.api.importing.request_bodies import ReadBody, read_body
from engine.api.importing.request_parameters import merged_parameters, read_parameters
from engine.api.importing.resolution import References
from engine.api.importing.schemas import Schemas
from engine.api.importing.security import Security
from engine.api.importing.servers import Servers
from engine.api.importing.swagger import as_request, servers_json
from engine.api.operation import Injection
from events.errors import Refused

__all__ = ("METHODS", "import_openapi", "import_openapi_content")

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
_DESCRIPTION_LIMIT = 500


def import_openapi(document: bytes | str, *, base_url: str | None = None) -> Imported:
    """Return a document's operations as actions; the same document gives the same names.

    What cannot be imported is in ``skipped`` with its reason, and the rest is imported. Nothing is fetched.

    :param base_url: what relative server URLs are relative to; it stands in where there is no server that can be called
    :raises Refused: if the document as a whole cannot be read: empty, over 30 MiB, neither JSON nor YAML (with the
        place), of an unknown version, without paths; or if ``base_url`` is no http URL
    """
    return import_openapi_content(read_content(document), base_url=base_url)


def import_openapi_content(content: Any, *, base_url: str | None = None) -> Imported:
    """Return what :func:`import_openapi` does, of content that has been read."""
    servers = Servers(base_url)
    return _Import(source_of(content), servers).run()


class _Found(msgspec.Struct, frozen=True):
    """An operation of the document, and the path it is under."""

    call: Call
    path_item: dict[str, Any]
    operation: dict[str, Any]


class _Import:
    """The import of one document."""

    def __init__(self, source: Source, servers: Servers) -> None:
        document = self._document = source.document
        self._is_swagger = source.dialect == "2.0"
        self._references = References(document)
        self._schemas = Schemas(self._references, with_siblings=source.dialect == "3.1")
        self._servers = servers
        components = document.get("components")
        schemes = components.get("securitySchemes") if isinstance(components, dict) else None
        self._security = Security(
            document.get("securityDefinitions") if self._is_swagger else schemes, self._references, self._base_url
        )
        self._skipped: list[Skipped] = []

    def run(self) -> Imported:
        found = list(self._found())
        actions: dict[str, dict[str, Any]] = {}
        used: list[tuple[Injection, ...]] = []
        for each, name in zip(found, action_names(one.call for one in found), strict=True):
            try:
                definition, security = self._action(each)
                check_action(definition, security)
            except Refused as error:
                self._skipped.append(Skipped(str(each.call), str(error)))
                continue
            actions[name] = definition
            used.append(security)
        info = self._document.get("info")
        info = info if isinstance(info, dict) else {}
        return Imported(
            title=_text(info.get("title")),
            version=_text(info.get("version")),
            base_url=self._base_url(),
            actions=actions,
            requirements=self._security.requirements(used),
            security=self._common(used),
            skipped=tuple(self._skipped),
        )

    def _found(self) -> Iterator[_Found]:
        for path, stated in self._document["paths"].items():
            if path.startswith("x-"):
                continue
            try:
                item = self._references.followed(stated)
                if not isinstance(item, dict) or not path.startswith("/"):
                    raise Unimportable("it is not a path with an object under it")
            except Refused as error:
                self._skipped.append(Skipped(path, str(error)))
                continue
            for method in METHODS:
                if isinstance(operation := item.get(method), dict):
                    yield _Found(Call(method, path, _text(operation.get("operationId"))), item, operation)
                elif method in item:
                    self._skipped.append(Skipped(str(Call(method, path)), "it is not an object"))

    def _action(self, found: _Found) -> tuple[dict[str, Any], tuple[Injection, ...]]:
        call, operation = found.call, found.operation
        if call.method == "trace":
            raise Unimportable("the method TRACE is not supported")
        security = self._security.injections(operation.get("security", self._document.get("security")))
        parameters = merged_parameters(self._references, found.path_item.get("parameters"), operation.get("parameters"))
        stated_body = operation.get("requestBody")
        if self._is_swagger:
            consumes = operation.get("consumes", self._document.get("consumes"))
            parameters, stated_body = as_request(parameters, consumes)
        path = call.path.partition("#")[0].replace(" ", "%20")
        read = read_parameters(parameters, path, security, self._schemas)
        if read.needs_authorization and not any(each.header == "authorization" for each in security):
            security = (*security, self._security.of_authorization_header())
        body = ReadBody() if stated_body is None else read_body(stated_body, self._schemas)
        definition: dict[str, Any] = {
            "url": self._server(found) + path,
            "method": call.method.upper(),
            "description": _description(operation, found.path_item),
            "active": True,
            **what_it_does(call.method),
        }
        self._put(definition, named((*read.arguments, *body.arguments)), body)
        if security != self._default_security():
            definition["security"] = [injection_json(each) for each in security]
        if read.idempotency_header is not None:
            definition["idempotency_header"] = read.idempotency_header
        return definition, security

    def _put(self, definition: dict[str, Any], arguments: list[tuple[str, Argument]], body: ReadBody) -> None:
        grouped(arguments, definition)
        uses = dict.fromkeys(name for _, argument in arguments for name in argument.written.uses)
        if definitions := self._schemas.definitions(uses):
            # Of all groups one schema is made, so that one of them has the definitions for all.
            group = next(definition[kind] for kind in ("query_params", "headers", "body") if kind in definition)
            group["$defs"] = definitions
        if body.content_type is not None:
            definition["body_content_type"] = body.content_type
        if body.root is not None:
            definition["body_root"] = body.root
        names = {argument.name: name for name, argument in arguments if argument.where == "body"}
        required = [names[name] for name in body.dependent]
        if required:
            definition["body"]["dependentRequired"] = dict.fromkeys(names.values(), required)
        if body.either:
            definition["body"]["anyOf"] = [
                {"required": [names[name] for name in listed if name in names]} for listed in body.either
            ]

    def _server(self, found: _Found) -> str:
        if self._is_swagger:
            own = found.operation.get("schemes")
            return self._servers.chosen(servers_json({**self._document, **({"schemes": own} if own else {})}))
        return self._servers.chosen(
            found.operation.get("servers"), found.path_item.get("servers"), self._document.get("servers")
        )

    def _base_url(self) -> str:
        try:
            stated = servers_json(self._document) if self._is_swagger else self._document.get("servers")
            return self._servers.chosen(stated)
        except Unimportable:
            return ""

    def _default_security(self) -> tuple[Injection, ...]:
        try:
            return self._security.injections(self._document.get("security"))
        except Unimportable:
            return ()

    def _common(self, used: list[tuple[Injection, ...]]) -> tuple[Injection, ...]:
        default = self._default_security()
        return default if default in used else ()


def _description(operation: dict[str, Any], path_item: dict[str, Any]) -> str:
    summary, text = _text(operation.get("summary")), _text(operation.get("description"))
    if not summary and not text:
        summary, text = _text(path_item.get("summary")), _text(path_item.get("description"))
    both = text if not summary or text.startswith(summary) else "\n".join(filter(None, [summary, text]))
    deprecated = "(deprecated) " if operation.get("deprecated") is True else ""
    return shortened(deprecated + both, _DESCRIPTION_LIMIT)


def _text(content: Any) -> str:
    return str(content).strip() if isinstance(content, (str, int, float)) else ""
