"""Results to what the log, the preview and the model get, beside a reference and the one encoding there must be.

Run as ``python -m benchmarks.truncate [--reference FILE]``. ``finish`` takes out control characters, encodes for the
log, cuts the preview and reads the status. What follows of a result past 400,000 characters (its digest, its text for
the payload table) is done in a thread, and shown apart.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from benchmarks.command import main
from benchmarks.figures import Figure
from benchmarks.reference import Reference
from benchmarks.scale import Scale
from benchmarks.timing import alternate
from benchmarks.workloads import result_object, result_text, with_control_characters
from engine.preview import cut_text
from engine.results import Finished, finish, preview_of, status_of
from engine.truncation import cut_for_model
from events.codec import Codec
from events.types import Executed

__all__ = ("measure_truncate",)

_GOALS = {"object": 1.5, "text": 2.0}
_PREVIEW_AND_STATUS = 50.0
_LIMIT = 2000
_FOR_THE_MODEL = 20_000
_SMALL = (1_000, 100_000)
_Works = dict[str, Callable[[], object]]


def measure_truncate(scale: Scale, reference: Reference) -> list[Figure]:
    """Return the figures of short objects and texts, then of long results: what is cleaned among them."""
    figures: list[Figure] = []
    for size in _SMALL:
        for kind, result in (("object", result_object(size)), ("text", result_text(size))):
            works = _works(finish(result), reference, result)
            figures += _figures(f"finish, {size // 1000} KB {kind}", works, None, scale)
    rows, text = result_object(scale.result), result_text(scale.result)
    long = {"object": rows, "list": rows["results"], "text": text, "text with NUL": with_control_characters(text)}
    for kind, result in long.items():
        finished = finish(result)
        works = _works(finished, reference, result)
        if kind in _GOALS:
            works |= _further_works(finished)
        figures += _figures(f"finish, {scale.result // 1_000_000} MB {kind}", works, _GOALS.get(kind), scale)
    return figures


def _figures(name: str, works: _Works, goal: float | None, scale: Scale) -> list[Figure]:
    samples = alternate(works, scale.rounds, scale.slice)
    figures = [_time(f"{name}: {work}", times) for work, times in samples.items()]
    own = samples["finish"]
    beside = [one / each for each, one in zip(own, samples["reference"], strict=True)]
    bare = [each / one for each, one in zip(own, samples["bare msgspec"], strict=True)]
    figures.append(Figure.of(name, "x reference", beside))
    figures.append(Figure.of(name, "of msgspec", bare, goal, at_most=True))
    return figures


def _time(name: str, times: list[float]) -> Figure:
    goal = _PREVIEW_AND_STATUS if name.endswith("preview and status") else None
    return Figure.of(name, "us", [1e6 * each for each in times], goal, at_most=True)


def _works(finished: Finished, reference: Reference, result: Any) -> _Works:
    _compare(finished, reference, result)
    return {
        "reference": partial(reference.finish, result),
        "finish": partial(finish, result),
        "bare msgspec": partial(msgspec.json.Encoder().encode, result),
    }


def _further_works(finished: Finished) -> _Works:
    """Return what is done beside, and what follows."""
    value = finished.value
    return {
        "preview and status": partial(_preview_and_status, value, finished.encoded),
        "cut for the model": partial(cut_for_model, value, finished.text, "m1:c1", _FOR_THE_MODEL),
        "stored form": partial(Codec().encode, _executed(finished), finished.encoded),
    }


def _preview_and_status(result: Any, encoded: bytes) -> tuple[str, str]:
    """Do what is left where the result is clean and encoded."""
    preview = cut_text(result, _LIMIT) if isinstance(result, str) else preview_of(encoded, _LIMIT)
    return preview, status_of(result, result)


def _executed(finished: Finished) -> Executed:
    return Executed(
        id="e1",
        key="m1:c1",
        call_id="c1",
        tool_name="noop",
        action_name="run",
        llm_name="run",
        status=finished.status,
        result=finished.value,
        preview=finished.preview,
    )


def _compare(finished: Finished, reference: Reference, result: Any) -> None:
    """Compare all three outputs; JSON text by what it says, for a reference may put spaces between its tokens."""
    encoded, preview, status = reference.finish(result)
    if not isinstance(result, str):
        preview = reference.finish(finished.encoded.decode())[1]
    alike = msgspec.json.decode(encoded) == msgspec.json.decode(finished.encoded)
    if not alike or (preview, status) != (finished.preview, finished.status):
        raise SystemExit("the product finishes this result otherwise than the reference: nothing to compare")


if __name__ == "__main__":
    main(beside=[measure_truncate])
