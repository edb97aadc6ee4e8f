"""What Google's API takes as a function's parameters, as far as its documents and its 400s say."""

from __future__ import annotations

from typing import Any

__all__ = ("broken_rules",)

OF_ALL = {"type", "title", "description", "nullable"}
OF_TYPE = {
    "string": {"enum", "format", "minLength", "maxLength", "pattern"},
    "integer": {"format", "minimum", "maximum"},
    "number": {"format", "minimum", "maximum"},
    "boolean": set[str](),
    "array": {"items", "minItems", "maxItems"},
    "object": {"properties", "required", "minProperties", "maxProperties"},
}


def broken_rules(node: Any, path: str = "") -> list[str]:
    """Return every rule that a schema breaks, with the path of the node."""
    if not isinstance(node, dict):
        return [f"{path}: no object"]
    if "anyOf" in node:
        found = [] if node.keys() == {"anyOf"} and node["anyOf"] else [f"{path}: a union has nothing beside it"]
        return found + [rule for each in node["anyOf"] for rule in broken_rules(each, f"{path}|")]
    kind = node.get("type")
    if not isinstance(kind, str) or kind not in OF_TYPE:
        return [f"{path}: type {kind!r}"]
    found = [f"{path}: {key} is not for {kind}" for key in node.keys() - OF_ALL - OF_TYPE[kind]]
    if not all(isinstance(value, str) and value for value in node.get("enum", ())):
        found.append(f"{path}: enum of something else than texts")
    if kind == "array":
        found += broken_rules(node.get("items"), f"{path}[]")
    properties = node.get("properties", {})
    if not set(node.get("required", ())) <= properties.keys():
        found.append(f"{path}: required without a property")
    return found + [rule for name, each in properties.items() for rule in broken_rules(each, f"{path}.{name}")]
