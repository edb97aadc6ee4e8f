"""Queries and forms: arguments as (name, value) pairs, and the pairs as text, percent-encoded once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final, TypeAlias
from urllib.parse import quote, quote_plus

import msgspec

from engine.api.operation import Style
from engine.api.wording import items_of, json_text, text_of
from engine.refusals import quoted
from events.errors import Refused

__all__ = ("Pair", "own_pairs", "pairs_of", "query_text", "urlencoded")

_SEPARATORS: Final = {"form": ",", "spaceDelimited": " ", "pipeDelimited": "|"}
_DEEPEST: Final = 20


class Pair(msgspec.Struct, frozen=True):
    """A name and what stands for it: texts with what is between them.

    :ivar separator: a comma stays one; others are encoded as the texts are
    """

    name: str
    texts: tuple[str, ...]
    separator: str = ","


Written: TypeAlias = Iterator[Pair]


def pairs_of(name: str, value: Any, style: Style | None = None, explode: bool | None = None) -> Written:
    """Yield the pairs that write one argument; null writes nothing, nor does an empty list or object.

    :param style: None: ``form``; others that are a query's are spaceDelimited, pipeDelimited and deepObject
    :param explode: a pair for each item; None: that is so for ``form`` and ``deepObject`` alone
    :raises Refused: if the style is none of a query's, or a deepObject is nested too deeply
    """
    style = style or "form"
    if style not in _SEPARATORS and style != "deepObject":
        raise Refused(f"Parameter {quoted(name)} cannot be written in style {style}.")
    if value is None:
        return
    if not isinstance(value, (list, dict)):
        yield Pair(name, (text_of(value),))
    elif style == "deepObject":
        yield from _deep(name, value, 0)
    elif (explode is None and style == "form") or explode:
        for key, text in items_of(value):
            yield Pair(key if isinstance(value, dict) else name, (text,))
    else:
        flat = [part for key, text in items_of(value) for part in ((key, text) if isinstance(value, dict) else (text,))]
        if flat:
            yield Pair(name, tuple(flat), _SEPARATORS[style])


def own_pairs(name: str, pairs: Iterable[Pair], others: Collection[str]) -> Written:
    """Yield one argument's pairs; an object's keys become names of their own, but never those of other parameters.

    So a model that fills an object cannot set what the owner has pinned, or what stands in the URL.

    :param others: the names of all parameters
    :raises Refused: if a key is one of them
    """
    for pair in pairs:
        if pair.name != name and pair.name in others:
            raise Refused(f"Parameter {quoted(name)} cannot hold {quoted(pair.name)}: that is another parameter.")
        yield pair


def as_json(name: str, value: Any) -> Pair:
    """Return the pair of an argument that is written as JSON text."""
    return Pair(name, (json_text(value),))


def _deep(name: str, value: Any, depth: int) -> Written:
    """Yield ``name[key]`` for each key, at any depth; a list's items share one name."""
    if depth > _DEEPEST:
        raise Refused(f"Parameter {quoted(name.partition('[')[0])} is nested too deeply for a query.")
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _deep(f"{name}[{key}]", item, depth + 1)
    elif isinstance(value, list):
        for item in value:
            yield from _deep(name, item, depth + 1)
    elif value is not None:
        yield Pair(name, (text_of(value),))


def query_text(pairs: Iterable[Pair]) -> str:
    """Return pairs as a URL's query: a space is ``%20``, and nothing that is reserved stays bare but the comma."""
    return "&".join(
        [
            f"{quote(pair.name, safe='')}={_joined(pair, [quote(text, safe='') for text in pair.texts], '%20')}"
            for pair in pairs
        ]
    )


def urlencoded(pairs: Iterable[Pair]) -> str:
    """Return pairs as application/x-www-form-urlencoded: a space is ``+``."""
    return "&".join(
        [f"{quote_plus(pair.name)}={_joined(pair, [quote_plus(text) for text in pair.texts], '+')}" for pair in pairs]
    )


def _joined(pair: Pair, texts: list[str], space: str) -> str:
    return {",": ",", " ": space, "|": "%7C"}[pair.separator].join(texts)
