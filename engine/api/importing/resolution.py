"""References of one document, followed within it: nothing is fetched."""

from __future__ import annotations

from typing import Any

from referencing import Registry, Specification
from referencing.exceptions import Unresolvable

from engine.api.importing.imported import Unimportable
from engine.refusals import quoted

__all__ = ("References",)

_MAX_STEPS = 50


class References:
    """Where the references (``$ref``) of a document lead; each is looked up once."""

    def __init__(self, document: dict[str, Any]) -> None:
        resource = Specification.OPAQUE.create_resource(document)
        registry: Registry[Any] = Registry().with_resource("", resource)
        self._lookup = registry.resolver("").lookup
        self._found: dict[str, Any] = {}

    def target(self, reference: str) -> Any:
        """Return what a reference points at. :raises Unimportable: if it is elsewhere, or nowhere"""
        if reference in self._found:
            return self._found[reference]
        if not reference.startswith("#"):
            raise Unimportable(f"it refers to another document, which is not fetched: {quoted(reference[:200])}")
        try:
            found = self._lookup(reference).contents
        except (Unresolvable, ValueError, TypeError, LookupError):
            raise Unimportable(f"it refers to {quoted(reference[:200])}, which is not in the document") from None
        self._found[reference] = found
        return found

    def followed(self, node: Any) -> Any:
        """Return a node, or what it refers to, through any number of references.

        Of a node with more than the reference, the rest goes before what is referred to: 3.1 says so of path items.

        :raises Unimportable: if a reference leads nowhere or back to itself
        """
        steps = 0
        rest: dict[str, Any] = {}
        while isinstance(node, dict) and isinstance(reference := node.get("$ref"), str):
            steps += 1
            if steps > _MAX_STEPS:
                raise Unimportable(f"its reference {quoted(reference[:200])} leads back to itself")
            if len(node) > 1:
                rest = {**{key: item for key, item in node.items() if key != "$ref"}, **rest}
            node = self.target(reference)
        return {**node, **rest} if rest and isinstance(node, dict) else node
