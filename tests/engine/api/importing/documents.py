"""Small documents, and what every import has to keep to."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from engine.actions import Action, resolve_actions
from engine.api.importing import Imported, import_openapi
from engine.api.operation import Operation
from engine.arguments import ArgumentChecker
from engine.rows import ToolRow
from engine.tools.api_tool import ApiTool
from tests.engine.api.calls import built

__all__ = ("body_of", "document", "imported", "operation", "parameter", "problem", "sent", "sound")

BASE = "https://api.example/v1"


def document(paths: dict[str, Any], version: str = "3.0.3", **rest: Any) -> dict[str, Any]:
    """Return a document with these paths; ``rest`` goes beside them."""
    head = {"swagger": version} if version == "2.0" else {"openapi": version, "servers": [{"url": BASE}]}
    return {**head, "info": {"title": "Bays", "version": "1"}, "paths": paths, **rest}


def operation(**rest: Any) -> dict[str, Any]:
    """Return an operation called ``act``."""
    return {"operationId": "act", "responses": {}, **rest}


def parameter(name: str, place: str = "query", **rest: Any) -> dict[str, Any]:
    """Return a parameter, a text unless it says otherwise."""
    return {"name": name, "in": place, "required": place == "path", "schema": {"type": "string"}, **rest}


def body_of(schema: Any, content_type: str = "application/json", *, required: bool = True, **media: Any) -> Any:
    """Return a request body of one content type."""
    return {"required": required, "content": {content_type: {"schema": schema, **media}}}


def imported(content: Any, **options: Any) -> Imported:
    """Import a document that stands as JSON content; whatever comes of it is sound."""
    result = import_openapi(msgspec.json.encode(content), **options)
    sound(result)
    return result


def sound(result: Imported) -> tuple[Action, ...]:
    """Assert that each imported operation is an action the engine can offer, check and send, and return them."""
    actions = resolve_actions(ToolRow(id="t1", name="api_tool", config=result.config), ApiTool, None)
    checker = ArgumentChecker()
    assert [action.name for action in actions] == list(result.actions)
    secrets = {secret for secret, stated in result.requirements.items() if stated["secret"]}
    for action in actions:
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", action.name)
        assert all(re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", name) for name in action.parameters["properties"])
        names = [name for group in action.groups for name in (*group.visible, *group.pinned)]
        assert len(names) == len(set(names)) == len(action.parameters["properties"])
        assert set(action.parameters["required"]) <= set(names)
        assert "cannot be called" not in (checker.validate(action, {}) or "")
        definition = result.actions[action.name]
        assert len(definition["description"]) <= 500
        assert action.require_approval is (definition["method"] not in ("GET", "HEAD"))
        security = definition.get("security", result.config["security"])
        known = Operation.of({**definition, "security": security})
        assert {secret for each in known.security for secret in each.secrets} <= secrets
    return actions


def problem(definition: dict[str, Any], arguments: dict[str, Any]) -> str | None:
    """Return what the engine says of arguments for an imported operation."""
    row = ToolRow(id="t1", name="api_tool", config={"actions": {"act": definition}})
    (action,) = resolve_actions(row, ApiTool, None)
    return ArgumentChecker().validate(action, arguments)


def sent(definition: dict[str, Any], arguments: dict[str, Any]) -> tuple[str, dict[str, str], str | None]:
    """Return path with query, headers and body of the request that valid arguments make."""
    assert problem(definition, arguments) is None
    request = built(definition, arguments)
    headers = {**dict(request.headers), **({"Cookie": "; ".join(request.cookies)} if request.cookies else {})}
    query = f"?{request.query}" if request.query else ""
    content = None if request.content is None else request.content.decode()
    return request.path + query, headers, content
