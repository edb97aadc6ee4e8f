"""What a tool says it made: the artifact's id and the files, by its optional hooks (BEHAVIOUR 96, 97)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from inspect import isawaitable
from itertools import islice
from typing import Any, Final, TypeVar

from engine.cleaning import RESULT_TEXT
from engine.contract import Tool
from events.types import Artifact

__all__ = ("artifact_id_of", "artifacts_of")

T = TypeVar("T")
_MOST: Final = 1000


async def artifact_id_of(tool: Tool, action_name: str, arguments: Mapping[str, Any]) -> str | None:
    """Return the trimmed id that ``tool.get_artifact_id(action_name, **arguments)`` names.

    None where there is no such hook, no id, or the hook fails: naming a file never costs a finished call its result.
    """
    return await _ask(tool, "get_artifact_id", action_name, arguments, _trimmed)


async def artifacts_of(tool: Tool, action_name: str, arguments: Mapping[str, Any]) -> tuple[Artifact, ...]:
    """Return the files that ``tool.get_artifacts(action_name, **arguments)`` lists; entries without an id are left out.

    Empty where there is no such hook, nothing listed, or the hook fails; at most a thousand.
    """
    return await _ask(tool, "get_artifacts", action_name, arguments, _listed) or ()


async def _ask(
    tool: Tool, hook: str, action_name: str, arguments: Mapping[str, Any], read: Callable[[Any], T | None]
) -> T | None:
    method = getattr(tool, hook, None)
    if method is None:
        return None
    try:
        answer = method(action_name, **arguments)
        return read(await answer if isawaitable(answer) else answer)
    except Exception:  # a hook is the tool's own code, and the call it belongs to has succeeded already
        return None


def _listed(answer: Any) -> tuple[Artifact, ...]:
    if not isinstance(answer, Iterable) or isinstance(answer, str | bytes | Mapping):
        return ()
    return tuple(artifact for entry in islice(answer, _MOST) if (artifact := _artifact(entry)) is not None)


def _artifact(entry: Any) -> Artifact | None:
    if isinstance(entry, Artifact):
        entry = {"id": entry.id, "filename": entry.filename, "ref": entry.ref}
    if not isinstance(entry, Mapping):
        return None
    name = _trimmed(entry.get("id"))
    if name is None:
        return None
    return Artifact(id=name, filename=_text(entry.get("filename")), ref=_text(entry.get("ref")))


def _trimmed(value: Any) -> str | None:
    """Return an id as trimmed text: text, numbers and UUIDs name something, nothing else does."""
    if (
        value is None
        or isinstance(value, bool | bytes | Mapping)
        or (isinstance(value, Iterable) and not isinstance(value, str))
    ):
        return None
    return RESULT_TEXT.clean(str(value)).strip() or None


def _text(value: Any) -> str | None:
    return RESULT_TEXT.clean(value) if isinstance(value, str) else None
