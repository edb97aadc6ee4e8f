"""Swagger 2.0 in the terms of OpenAPI 3: its servers, parameters and bodies."""

from __future__ import annotations

from typing import Any

from engine.api.importing.imported import Unimportable
from engine.refusals import quoted

__all__ = ("as_request", "servers_json")

_FORM = "application/x-www-form-urlencoded"
_MULTIPART = "multipart/form-data"
_OWN = frozenset({"name", "in", "description", "required", "collectionFormat", "allowEmptyValue", "schema"})
_SEPARATED = {
    "query": {"ssv": "spaceDelimited", "pipes": "pipeDelimited"},
    "formData": {"ssv": "spaceDelimited", "pipes": "pipeDelimited"},
}


def servers_json(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the servers that ``schemes``, ``host`` and ``basePath`` describe, https first."""
    host, path = document.get("host"), document.get("basePath")
    path = f"/{path.strip('/')}" if isinstance(path, str) and path.strip("/") else ""
    if not isinstance(host, str) or not host:
        return [{"url": path}] if path else []
    stated = document.get("schemes")
    schemes = [each for each in stated if isinstance(each, str)] if isinstance(stated, list) else []
    ordered = sorted(schemes, key=lambda scheme: scheme != "https") or [""]
    return [{"url": f"{scheme}:{place}" if scheme else place} for scheme in ordered for place in (f"//{host}{path}",)]


def as_request(parameters: list[dict[str, Any]], consumes: Any) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """Return the parameters that are none of the body's, and the request body that the others describe, if any.

    :raises Unimportable: if a parameter cannot be said in those terms
    """
    types = [each for each in consumes if isinstance(each, str)] if isinstance(consumes, list) else []
    bodies = [each for each in parameters if each.get("in") == "body"]
    fields = [each for each in parameters if each.get("in") == "formData"]
    others = [_parameter(each) for each in parameters if each.get("in") not in ("body", "formData")]
    if bodies:
        content = {name: {"schema": bodies[0].get("schema")} for name in types or ["application/json"]}
        about = {"description": bodies[0].get("description"), "required": bodies[0].get("required") is True}
        return others, {"content": content, **about}
    return others, _form(fields, types) if fields else None


def _form(fields: list[dict[str, Any]], types: list[str]) -> dict[str, Any]:
    forms = [each for each in types if each.partition(";")[0].strip().lower() in (_FORM, _MULTIPART)]
    if any(field.get("type") == "file" for field in fields):
        forms = [each for each in forms if each.startswith(_MULTIPART)] or [_MULTIPART]
    required = [field["name"] for field in fields if field.get("required") is True]
    schema = {
        "type": "object",
        "properties": {field["name"]: {**_schema(field), "description": field.get("description")} for field in fields},
        "required": required,
    }
    encoding = {field["name"]: rule for field in fields if (rule := _style(field))}
    media = {"schema": schema, "encoding": encoding}
    return {"content": dict.fromkeys(forms or [_FORM], media), "required": bool(required)}


def _parameter(stated: dict[str, Any]) -> dict[str, Any]:
    about = {key: item for key, item in stated.items() if key in ("name", "in", "description", "required")}
    return {**about, "schema": _schema(stated), **_style(stated)}


def _schema(stated: dict[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in stated.items() if key not in _OWN}


def _style(stated: dict[str, Any]) -> dict[str, Any]:
    if stated.get("type") != "array":
        return {}
    place, form = stated.get("in"), stated.get("collectionFormat", "csv")
    if form == "multi":
        return {"style": "form", "explode": True}
    if form == "csv":
        return {"style": "form" if place in ("query", "formData") else "simple", "explode": False}
    style = _SEPARATED.get(str(place), {}).get(str(form))
    if style is None:
        name = quoted(str(stated.get("name")))
        raise Unimportable(f"its parameter {name} has the collectionFormat {quoted(str(form))} in {place}")
    return {"style": style, "explode": False}
