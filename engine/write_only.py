"""Arguments that a schema marks ``writeOnly``: values that go to the tool and that nobody reads again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

__all__ = ("has_write_only", "with_write_only")

_ALSO: Final = ("allOf", "anyOf", "oneOf")
_IF: Final = ("if", "then", "else", "not")


def has_write_only(schema: dict[str, Any]) -> bool:
    """Tell whether something in a schema is marked ``writeOnly``."""
    waiting: list[Any] = [schema]
    while waiting:
        content = waiting.pop()
        if type(content) is dict:
            if content.get("writeOnly") is True:
                return True
            waiting += [item for item in content.values() if type(item) is dict or type(item) is list]
        elif type(content) is list:
            waiting += [item for item in content if type(item) is dict or type(item) is list]
    return False


def with_write_only(schema: dict[str, Any], arguments: Any, change: Callable[[Any], Any]) -> Any:
    """Return arguments with every value changed that the schema marks ``writeOnly``; ``arguments`` stays as it is.

    A value counts as marked if any branch that may describe it marks it.
    """
    return _Walk(schema, change).top(arguments)


class _Walk:
    def __init__(self, root: dict[str, Any], change: Callable[[Any], Any]) -> None:
        self._root = root
        self._change = change

    def top(self, arguments: Any) -> Any:
        if type(arguments) is not dict:
            return arguments
        known = list(self._all([self._root]))
        return {key: self.changed(list(_of_key(known, key)), item) for key, item in arguments.items()}

    def changed(self, schemas: list[Any], value: Any) -> Any:
        known = list(self._all(schemas))
        if any(schema.get("writeOnly") is True for schema in known):
            return self._change(value)
        if not known:
            return value
        if type(value) is dict:
            return {key: self.changed(list(_of_key(known, key)), item) for key, item in value.items()}
        if type(value) is list:
            return [self.changed(list(_of_place(known, place)), item) for place, item in enumerate(value)]
        return value

    def _all(self, schemas: list[Any]) -> Iterator[dict[str, Any]]:
        """Yield the schemas with all that they refer to and combine; one that refers to itself, once."""
        waiting, seen = list(schemas), set[int]()
        while waiting:
            schema = waiting.pop()
            if type(schema) is not dict or id(schema) in seen:
                continue
            seen.add(id(schema))
            yield schema
            reference = schema.get("$ref")
            if isinstance(reference, str):
                waiting.append(self._referred(reference))
            for keyword in _ALSO:
                branches = schema.get(keyword)
                waiting += branches if type(branches) is list else []
            waiting += [schema[keyword] for keyword in _IF if keyword in schema]
            dependent = schema.get("dependentSchemas")
            waiting += dependent.values() if type(dependent) is dict else []

    def _referred(self, reference: str) -> Any:
        if not reference.startswith("#"):
            return None
        found: Any = self._root
        for step in reference[1:].split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            found = found.get(step) if type(found) is dict else None
        return found


def _of_key(schemas: list[dict[str, Any]], key: str) -> Iterator[Any]:
    for schema in schemas:
        named: Any = schema.get("properties")
        described = type(named) is dict and key in named
        if described:
            yield named[key]
        for pattern, inner in _pairs(schema.get("patternProperties")):
            if _matches(pattern, key):
                described = True
                yield inner
        if not described:
            yield schema.get("additionalProperties")
            yield schema.get("unevaluatedProperties")


def _pairs(content: Any) -> list[tuple[str, Any]]:
    return list(content.items()) if type(content) is dict else []


def _matches(pattern: str, key: str) -> bool:
    try:
        return re.search(pattern, key) is not None
    except re.error:
        # Of another dialect: sealing too much loses nothing.
        return True


def _of_place(schemas: list[dict[str, Any]], place: int) -> Iterator[Any]:
    for schema in schemas:
        first = schema.get("prefixItems")
        items = schema.get("items")
        if type(first) is list and place < len(first):
            yield first[place]
        elif type(items) is list:
            yield items[place] if place < len(items) else schema.get("additionalItems")
        else:
            yield items
        yield schema.get("contains")
        yield schema.get("unevaluatedItems")
