"""YAML as OpenAPI means it: what JSON has and no more, so that dates, ``no`` and ``0777`` stay as they were written."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import yaml
from yaml.constructor import ConstructorError

from events.errors import Refused

__all__ = ("read_yaml",)

_MAX_MERGED = 100_000
_MAX_NODES = 2_000_000
_MAX_DEPTH = 200
_TAG = "tag:yaml.org,2002:"
_DIGITS = "0|[1-9][0-9]{0,99}"


class _Loader(yaml.CSafeLoader):
    """Reads the scalars that JSON has too; all others are text, and so are keys."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._merged = 0

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Put merged mappings in their place, a bounded number of times."""
        before = len(node.value)
        super().flatten_mapping(node)
        self._merged += max(0, len(node.value) - before)
        if self._merged > _MAX_MERGED:
            raise _too_large()

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return the mapping, its keys as they are written."""
        self.flatten_mapping(node)
        made = {}
        for key, item in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise ConstructorError(None, None, "a key must be plain text", key.start_mark)
            made[key.value] = self.construct_object(item, deep=deep)
        return made

    def construct_number(self, node: yaml.ScalarNode) -> int | float | str:
        """Return an integer, or a fraction that is finite."""
        text = self.construct_scalar(node)
        if re.fullmatch(f"-?(?:{_DIGITS})", text):
            return int(text)
        number = float(text)
        return number if abs(number) != float("inf") else text


def read_yaml(text: str) -> Any:
    """Return the one document in a YAML text, as JSON content; a key that comes twice counts as its last.

    Parts that are referred to (``*alias``) are shared, not copied.

    :raises Refused: if it is no YAML, with line and column; if it refers to itself, or is too large once its aliases
        are spelt out
    """
    try:
        with _without_collector():
            content = yaml.load(text, _Loader)  # noqa: S506 - it is a safe loader's child
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f" (line {mark.line + 1}, column {mark.column + 1})" if mark is not None else ""
        raise Refused(f"The document is not valid YAML: {error.problem or error.context}{place}.") from None
    except (yaml.YAMLError, ValueError) as error:
        raise Refused(f"The document is not valid YAML: {str(error).splitlines()[0]}.") from None
    _Measure().check(content, 0)
    return content


@contextmanager
def _without_collector() -> Iterator[None]:
    """Let the cycle collector rest: among so many new objects, all alive, it takes three quarters of the time."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class _Measure:
    """Counts nodes as if each alias were spelt out; each shared part is looked into once."""

    def __init__(self) -> None:
        self._sizes: dict[int, int] = {}
        self._open: set[int] = set()

    def check(self, content: Any, depth: int) -> int:
        if not isinstance(content, (dict, list)):
            return 1
        key = id(content)
        if (known := self._sizes.get(key)) is not None:
            return known
        if key in self._open:
            raise Refused("The document contains itself by an alias (*): it cannot be read as JSON.")
        if depth > _MAX_DEPTH:
            raise Refused(f"The document is nested more than {_MAX_DEPTH} levels deep.")
        self._open.add(key)
        items = content.values() if isinstance(content, dict) else content
        size = 1 + sum(self.check(item, depth + 1) for item in items)
        self._open.discard(key)
        if size > _MAX_NODES:
            raise _too_large()
        self._sizes[key] = size
        return size


def _too_large() -> Refused:
    return Refused("The document's aliases (*, <<) stand for far more than it says: write it out, or give it as JSON.")


def _restrict(loader: type[_Loader]) -> None:
    kept = ("null", "bool", "str", "seq", "map")
    loader.yaml_constructors = {
        None: yaml.SafeLoader.yaml_constructors[None],
        **{_TAG + name: yaml.SafeLoader.yaml_constructors[_TAG + name] for name in kept},
        _TAG + "int": loader.construct_number,
        _TAG + "float": loader.construct_number,
    }
    loader.yaml_implicit_resolvers = {}
    words = ("null|Null|NULL|~|", "true|True|TRUE|false|False|FALSE", rf"-?(?:{_DIGITS})")
    fraction = rf"-?(?:{_DIGITS})(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"
    loader.add_implicit_resolver(_TAG + "merge", re.compile("^<<$"), ["<"])
    for name, pattern, first in zip(
        ("null", "bool", "int", "float"),
        (*words, fraction),
        (["~", "n", "N", ""], list("tTfF"), list("-0123456789"), list("-0123456789")),
        strict=True,
    ):
        loader.add_implicit_resolver(_TAG + name, re.compile(f"^(?:{pattern})$"), first)


_restrict(_Loader)
