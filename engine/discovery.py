"""Finding tools: the built-in folder, the caller's classes, the operator's folders, installed packages (DESIGN 6)."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterable, Iterator
from hashlib import sha256
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Final

import msgspec

from engine.contract import Tool
from events.errors import NotFound

__all__ = ("ENTRY_POINTS", "Problem", "ToolManager", "tools_of")

ENTRY_POINTS: Final = "calljournal.tools"
"""The entry-point group of installed packages; an entry names a tool class, or a module of them."""

_BUILT_IN: Final = "engine.tools"
_FOLDER: Final = Path(__file__).parent / "tools"


class Problem(msgspec.Struct, frozen=True):
    """A tool that could not be taken, and why; the rest is not affected.

    :ivar source: the file, class or entry point
    """

    source: str
    reason: str


class _Found(msgspec.Struct, frozen=True):
    name: str
    tool: type[Tool]
    source: str


class ToolManager:
    """Knows every tool there is. Two tools of one name: the first wins, and built-in ones come first.

    Then come the classes in ``extra``, the folders in ``paths``, and the entry points. Nothing is imported before it is
    needed: a built-in tool that is asked for by name costs the import of its own module only. What a folder holds is
    read once: a file dropped in is live at the next start.

    :param paths: folders of modules (``*.py``, or packages) that define tools
    :param extra: classes given outright; a class without a ``name`` has its module's
    """

    def __init__(self, paths: Iterable[Path] = (), extra: Iterable[type[Tool]] = ()) -> None:
        self._paths = tuple(paths)
        self._extra = tuple(extra)
        self._problems: list[Problem] = []
        self._built_in: dict[str, dict[str, _Found]] = {}
        self._all: dict[str, _Found] | None = None

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What could not be taken, as far as has been looked yet."""
        return tuple(self._problems)

    def load_tools(self) -> dict[str, type[Tool]]:
        """Return the catalogue: every tool by name, without internal ones."""
        return {found.name: found.tool for found in self._everything().values() if not found.tool.internal}

    def load_tool(self, name: str) -> type[Tool]:
        """Return a tool's class by name; internal ones too.

        :raises NotFound: if there is none, or its module cannot be imported
        """
        if self._all is None and (_FOLDER / f"{name}.py").is_file() and _is_tool_module(name):
            found = self._built_in_module(name).get(name)
            if found is not None:
                return found.tool
        everything = self._everything()
        if name not in everything:
            raise NotFound(self._missing(name, everything))
        return everything[name].tool

    def _missing(self, name: str, known: Iterable[str]) -> str:
        listed = ", ".join(sorted(known))
        problems = "".join(f"; {problem.source}: {problem.reason}" for problem in self._problems)
        return f"there is no tool {name!r} (there are: {listed}){problems}"

    def _everything(self) -> dict[str, _Found]:
        if self._all is None:
            taken: dict[str, _Found] = {}
            for found in self._candidates():
                first = taken.setdefault(found.name, found)
                if first.tool is not found.tool:
                    self._report(found.source, f"there is a tool {found.name!r} already, in {first.source}")
            self._all = taken
        return self._all

    def _candidates(self) -> Iterator[_Found]:
        for stem, _ in _modules_in(_FOLDER):
            yield from self._built_in_module(stem).values()
        for tool in self._extra:
            source = f"{tool.__module__}.{tool.__qualname__}"
            if inspect.isabstract(tool):
                self._report(source, f"lacks {', '.join(sorted(tool.__abstractmethods__))}")
            else:
                yield _Found(_name_of(tool, _stem_of(tool.__module__)), tool, source)
        for folder in self._paths:
            yield from self._folder(folder)
        for entry in entry_points(group=ENTRY_POINTS):
            yield from self._entry(entry)

    def _built_in_module(self, stem: str) -> dict[str, _Found]:
        if stem not in self._built_in:
            source = f"{_BUILT_IN}.{stem}"
            try:
                module = importlib.import_module(source)
            except Exception as error:  # one tool whose library is missing must not cost the others
                self._report(source, _why(error))
                self._built_in[stem] = {}
            else:
                self._built_in[stem] = {found.name: found for found in _found_in(module, stem, source)}
        return self._built_in[stem]

    def _folder(self, folder: Path) -> Iterator[_Found]:
        if not folder.is_dir():
            self._report(str(folder), "there is no such folder; see the setting tools_path")
            return
        for stem, path in _modules_in(folder):
            try:
                module = _import_file(stem, path)
            except (Exception, SystemExit) as error:  # a stranger's module may do anything, exit included
                self._report(str(path), _why(error))
            else:
                yield from _found_in(module, stem, str(path))

    def _entry(self, entry: EntryPoint) -> Iterator[_Found]:
        source = f"entry point {entry.name} ({entry.value})"
        try:
            loaded = entry.load()
        except (Exception, SystemExit) as error:  # as above: an installed package may be broken
            self._report(source, _why(error))
            return
        if isinstance(loaded, ModuleType):
            yield from _found_in(loaded, _stem_of(loaded.__name__), source)
        elif inspect.isclass(loaded) and issubclass(loaded, Tool) and not inspect.isabstract(loaded):
            yield _Found(_name_of(loaded, _stem_of(loaded.__module__)), loaded, source)
        else:
            self._report(source, "is neither a tool class nor a module of them")

    def _report(self, source: str, reason: str) -> None:
        problem = Problem(source, reason)
        if problem not in self._problems:
            self._problems.append(problem)


def tools_of(module: ModuleType) -> tuple[type[Tool], ...]:
    """Return the tools a module defines itself, in its order: not what it merely imports, not abstract classes."""
    return tuple(
        member
        for member in vars(module).values()
        if inspect.isclass(member)
        and issubclass(member, Tool)
        and member.__module__ == module.__name__
        and not inspect.isabstract(member)
    )


def _found_in(module: ModuleType, stem: str, source: str) -> Iterator[_Found]:
    for tool in dict.fromkeys(tools_of(module)):
        yield _Found(_name_of(tool, stem), tool, source)


def _name_of(tool: type[Tool], stem: str) -> str:
    """Return a tool's name: its own, or that of an abstract class it completes, else its module's.

    The name of a concrete class it extends is that tool's, not its own.
    """
    for kind in tool.__mro__:
        name = vars(kind).get("name")
        if name and (kind is tool or inspect.isabstract(kind)):
            return str(name)
    return stem


def _stem_of(module: str) -> str:
    if module == "__main__":
        return Path(getattr(sys.modules[module], "__file__", None) or "main").stem
    return module.rpartition(".")[2]


def _modules_in(folder: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(folder.iterdir()):
        file = path / "__init__.py" if path.is_dir() else path
        if file.suffix == ".py" and file.is_file() and _is_tool_module(path.stem):
            yield path.stem, file


def _is_tool_module(stem: str) -> bool:
    return stem.isidentifier() and not stem.startswith("_") and stem != "base"


def _import_file(stem: str, path: Path) -> ModuleType:
    """Import a file under a name of its own, so that it can neither shadow a library nor be shadowed."""
    name = f"calljournal_tools_{sha256(str(path.resolve()).encode()).hexdigest()[:12]}_{stem}"
    places = [str(path.parent)] if path.name == "__init__.py" else None
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=places)
    if spec is None or spec.loader is None:
        raise ImportError("it cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _why(error: BaseException) -> str:
    return f"cannot be imported: {type(error).__name__}: {error}"
