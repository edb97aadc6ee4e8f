"""Imported before anything else of ``engine``: ``events`` and ``projections`` are the packages that stand beside it.

Others use these names too: PyPI's ``Events`` installs a package ``events``, which Python finds before ours in an
editable install. Then ours are loaded from where they are, so that ``calljournal doctor`` can say what is wrong.
"""

from __future__ import annotations

import sys
import warnings
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

__all__ = ()


def _claim(name: str) -> None:
    folder = Path(__file__).resolve().parent.parent / name
    if not (folder / "__init__.py").is_file():
        return
    loaded = sys.modules.get(name)
    if loaded is not None:
        if not _is_in(getattr(loaded, "__file__", None), folder):
            raise ImportError(
                f"the package {name!r} in use is {loaded.__file__}, not calljournal's; uninstall what brought it"
            )
        return
    found = find_spec(name)
    if found is not None and _is_in(found.origin, folder):
        return
    there = found.origin if found is not None else "nowhere"
    warnings.warn(f"`import {name}` alone finds {there}; see calljournal doctor", ImportWarning, stacklevel=2)
    _load(name, folder)


def _is_in(file: str | None, folder: Path) -> bool:
    return file is not None and Path(file).resolve().parent == folder


def _load(name: str, folder: Path) -> None:
    spec = spec_from_file_location(name, folder / "__init__.py", submodule_search_locations=[str(folder)])
    if spec is None or spec.loader is None:
        raise ImportError(f"{folder} cannot be imported")
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise


for _name in ("events", "projections"):
    _claim(_name)
