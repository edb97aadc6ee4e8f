"""What ``doctor`` looks at outside the database: Python, the libraries, packages that stand in our way."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.machinery import PathFinder
from importlib.metadata import PackageNotFoundError, packages_distributions, requires, version
from pathlib import Path
from types import MappingProxyType
from typing import Final

import engine
from engine.cli.finding import Finding

__all__ = ("check_dependencies", "check_environment", "check_packages", "check_python")

_OURS: Final = "calljournal"
_FIRST_WORDS: Final = MappingProxyType(
    {"events": "What happened", "projections": "What follows", "engine": "What makes it happen"}
)
"""How our packages introduce themselves: a package of the same name would have replaced that."""

_FIRST: Final = (3, 11)
_BEYOND: Final = (3, 14)
_REQUIREMENT: Final = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?\s*(?:>=\s*([0-9.]+))?")


def check_environment() -> Iterator[Finding]:
    """Yield what there is to say of this process's surroundings."""
    yield check_python(sys.version_info[:3])
    try:
        wanted = requires(_OURS) or []
    except PackageNotFoundError:
        yield Finding("warning", "calljournal", "runs from its source, not installed", "pip install -e .")
        wanted = []
    yield from check_dependencies(wanted, _installed)
    yield from check_packages(Path(engine.__file__).parent.parent, _found, packages_distributions())


def check_python(found: tuple[int, int, int]) -> Finding:
    """Tell whether this is a Python that calljournal is made for."""
    text = ".".join(map(str, found))
    if _FIRST <= found[:2] < _BEYOND:
        return Finding("ok", "Python", text)
    return Finding("fault", "Python", f"{text} is not supported", "use Python 3.11, 3.12 or 3.13")


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def check_dependencies(requirements: Sequence[str], installed: Callable[[str], str | None]) -> Iterator[Finding]:
    """Yield a finding for each library that is needed.

    :param requirements: as a distribution's metadata states them; those of extras are passed over
    :param installed: gives a distribution's version, None if it is not there
    """
    for requirement in requirements:
        needed = _REQUIREMENT.match(requirement)
        if "extra ==" in requirement or needed is None:
            continue
        name, least = needed.group(1), needed.group(2)
        found = installed(name)
        if found is None:
            yield Finding("fault", name, "is not installed", f"pip install '{name}{f'>={least}' if least else ''}'")
        elif least is not None and _numbers(found) < _numbers(least):
            yield Finding("fault", name, f"{found} is too old", f"pip install '{name}>={least}'")
        else:
            yield Finding("ok", name, found)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text.split("+")[0])[:3])


def _found(package: str) -> Path | None:
    """Return the folder that a fresh ``import`` of the package would take."""
    spec = PathFinder.find_spec(package)
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    return Path(places[0]) if places else None


def check_packages(
    root: Path, found: Callable[[str], Path | None], owners: Mapping[str, Sequence[str]]
) -> Iterator[Finding]:
    """Yield a finding for each of our packages: whether it is ours that Python finds, and nobody has written into it.

    :param root: the folder that holds them
    :param found: the folder in which Python finds a package
    :param owners: for each package's name, the distributions that claim it
    """
    for name in _FIRST_WORDS:
        place = found(name)
        others = sorted({owner for owner in owners.get(name, ()) if owner.lower() != _OURS})
        theirs = f" (of {', '.join(others)})" if others else ""
        remove = f"pip uninstall {' '.join(others)}" if others else "remove it, or give calljournal its own environment"
        if place is not None and place.resolve() != (root / name).resolve():
            said = f"`import {name}` finds {place}{theirs}, not calljournal's {root / name}"
            yield Finding("fault", name, said, remove)
        elif not _is_intact(root, name):
            advice = f"{remove}; then pip install --force-reinstall --no-deps calljournal"
            yield Finding("fault", name, f"{root / name} was overwritten{theirs}", advice)
        elif others:
            advice = f"{remove}; then install calljournal again, since that removes files of ours too"
            yield Finding("warning", name, f"{', '.join(others)} has files in {root / name} too", advice)
        else:
            yield Finding("ok", name, str(root / name))


def _is_intact(root: Path, name: str) -> bool:
    initial = root / name / "__init__.py"
    return initial.is_file() and _FIRST_WORDS[name] in initial.read_text(errors="replace")
