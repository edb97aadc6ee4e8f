"""The public surface: what is promised is exported, nothing listed is a lie, everything listed is explained."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from types import ModuleType

import pytest

from tests.shape import modules
from tests.shape_names import module_name

PROMISED = {
    "engine": (
        "ActionSettings CallContext Engine ResultGuard Settings Tool ToolCall ToolContext ToolManager ToolResult "
        "ToolRow parse_calls"
    ),
    "events": (
        "Approved Conflict Confirmed Denied EventLog Executed Failed JournalError LateOutcome LogUnavailable NotFound "
        "Paused Proposed Recorded Refused Resumed ToolEvent TransitionRejected Unavailable VersionConflict to_wire"
    ),
    "projections": "Projection rebuild verify",
}
MODULES = [module_name(s.path) for s in modules() if s.ours and "migrations" not in s.path.parts]


@pytest.mark.parametrize("package", PROMISED)
def test_what_is_promised_is_exported(package: str) -> None:
    module = importlib.import_module(package)
    assert set(PROMISED[package].split()) - set(module.__all__) == set()
    # projections.verify is a module and a function; the package's name means the function.
    assert [name for name in PROMISED[package].split() if inspect.ismodule(getattr(module, name))] == []


@pytest.mark.parametrize("name", MODULES)
def test_what_is_listed_exists(name: str) -> None:
    module = importlib.import_module(name)
    assert isinstance(module.__all__, tuple)
    assert [listed for listed in module.__all__ if not hasattr(module, listed)] == []


@pytest.mark.parametrize("name", MODULES)
def test_what_is_listed_is_explained(name: str) -> None:
    module = importlib.import_module(name)
    assert (module.__doc__ or "").strip(), f"{name} has no docstring"
    assert [path for path, text in _public(module) if not text.strip()] == []


def _public(module: ModuleType) -> Iterator[tuple[str, str]]:
    """Yield (name, docstring) of the functions and classes a module defines and lists, and of their public members."""
    for name in module.__all__:
        thing = getattr(module, name)
        if getattr(thing, "__module__", None) != module.__name__:
            continue
        if inspect.isclass(thing):
            # A class without a docstring would answer with its base's.
            yield name, thing.__dict__.get("__doc__") or ""
            yield from ((f"{name}.{member}", text) for member, text in _members(thing))
        elif inspect.isroutine(thing):
            yield name, thing.__doc__ or ""


def _members(cls: type) -> Iterator[tuple[str, str]]:
    for member, value in vars(cls).items():
        function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if member.startswith("_") or not (inspect.isfunction(function) or isinstance(function, property)):
            continue
        text = inspect.getdoc(getattr(cls, member)) or ""
        if not text and isinstance(value, property) and f":ivar {member}:" in (cls.__doc__ or ""):
            text = "in the docstring of its class"
        yield member, text
