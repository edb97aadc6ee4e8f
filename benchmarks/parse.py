"""Calls to (tool, action, arguments), beside a reference and beside bare ``msgspec.json.decode``.

Run as ``python -m benchmarks.parse [--reference FILE]``. The parser takes typed calls; what it takes with the making of
one is shown too, since the reference takes a plain dict. The check of the arguments against a schema is not part of
parsing and shown apart.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from benchmarks.command import main
from benchmarks.figures import Figure
from benchmarks.reference import Reference
from benchmarks.scale import Scale
from benchmarks.timing import alternate
from benchmarks.workloads import CALL_SIZES, call_arguments, routes
from engine.actions import Action
from engine.arguments import ArgumentChecker
from engine.call import ToolCall
from engine.parsing import ToolActionParser

__all__ = ("measure_parse",)

_BESIDE_REFERENCE = 3.0
_BESIDE_MSGSPEC = 1.3
_SMALL = 1000


def measure_parse(scale: Scale, reference: Reference) -> list[Figure]:
    """Return the figures of each size of arguments: as JSON text, as an object, and none."""
    figures: list[Figure] = []
    for label, size in CALL_SIZES:
        figures += _of_text(f"parse, {label}", call_arguments(size), scale, reference, is_small=size < _SMALL)
    figures += _beside(f"parse, {CALL_SIZES[0][0]}, an object", call_arguments(200), scale, reference)
    figures += _beside("parse, no arguments", "", scale, reference)
    return figures


def _of_text(
    name: str, arguments: dict[str, Any], scale: Scale, reference: Reference, *, is_small: bool
) -> list[Figure]:
    text = json.dumps(arguments)
    checker, action = ArgumentChecker(), _action(arguments)
    assert checker.validate(action, arguments) is None
    works: dict[str, Callable[[], object]] = {
        "reference": _reference_work(reference, text),
        "parse": _product_work(reference, text),
        "the typed call and parse": _product_work(reference, text, is_made=False),
        "bare msgspec": partial(msgspec.json.decode, text),
        "check of the arguments": partial(checker.validate, action, arguments),
    }
    samples = alternate(works, scale.rounds, scale.slice)
    figures = [Figure.of(f"{name}: {work}", "us", [1e6 * each for each in times]) for work, times in samples.items()]
    own = samples["parse"]
    beside = [one / each for each, one in zip(own, samples["reference"], strict=True)]
    figures.append(Figure.of(name, "x reference", beside, _BESIDE_REFERENCE if is_small else None))
    bare = [each / one for each, one in zip(own, samples["bare msgspec"], strict=True)]
    figures.append(Figure.of(name, "of msgspec", bare, None if is_small else _BESIDE_MSGSPEC, at_most=True))
    return figures


def _beside(name: str, arguments: Any, scale: Scale, reference: Reference) -> list[Figure]:
    works = {"reference": _reference_work(reference, arguments), "parse": _product_work(reference, arguments)}
    samples = alternate(works, scale.rounds, scale.slice)
    ratios = [one / each for each, one in zip(samples["parse"], samples["reference"], strict=True)]
    return [
        Figure.of(name, "us", [1e6 * each for each in samples["parse"]]),
        Figure.of(name, "x reference", ratios),
    ]


def _reference_work(reference: Reference, arguments: Any) -> Callable[[], object]:
    return partial(reference.parse, {"id": "c1", "name": "create_artifact", "arguments": arguments}, routes())


def _product_work(reference: Reference, arguments: Any, *, is_made: bool = True) -> Callable[[], object]:
    names, parse = routes(), ToolActionParser().parse
    call = ToolCall("c1", "create_artifact", arguments)
    parsed = parse(call, names)
    expected = _reference_work(reference, arguments)()
    if (parsed.tool_id, parsed.action_name, parsed.arguments) != expected:
        raise SystemExit("the product parses this call otherwise than the reference: nothing to compare")
    if is_made:
        return partial(parse, call, names)
    return lambda: parse(ToolCall("c1", "create_artifact", arguments), names)


def _action(arguments: dict[str, Any]) -> Action:
    schema = {
        "type": "object",
        "properties": {name: _schema_of(value) for name, value in arguments.items()},
        "required": list(arguments),
    }
    return Action("artifacts", "artifacts", "create_artifact", "", schema, schema)


def _schema_of(value: Any) -> dict[str, Any]:
    match value:
        case bool():
            return {"type": "boolean"}
        case int():
            return {"type": "integer"}
        case list():
            return {"type": "array", "items": _schema_of(value[0])}
        case dict():
            return {"type": "object", "properties": {name: _schema_of(each) for name, each in value.items()}}
    return {"type": "string"}


if __name__ == "__main__":
    main(beside=[measure_parse])
