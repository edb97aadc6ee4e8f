"""What a server's result becomes: typed JSON content in the server's order, text as text, bytes only as notes of them.

Nothing is fetched from a link, and no name that a server gives is ever a file's.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Final

from engine.contract import ToolResult

__all__ = ("Keep", "content_of", "resource_content", "size_of", "tool_result")

Keep = Callable[[str, bytes], None]
"""Takes the SHA-256 and the bytes of what is left out of a result."""

_SILENT: Final = "The MCP server says that the call failed, and not why."
_LINKED: Final = (("uri", "uri"), ("name", "name"), ("title", "title"), ("description", "description"))
_KIND: Final = 80


def size_of(result: Mapping[str, Any]) -> int:
    """Return about how much there is to decode, in characters."""
    total = 0
    for block in _blocks(result):
        resource = block.get("resource") if isinstance(block, Mapping) else None
        for holder, key in ((block, "data"), (resource, "blob")):
            packed = holder.get(key) if isinstance(holder, Mapping) else None
            total += len(packed) if isinstance(packed, str) else 0
    return total


def tool_result(result: Mapping[str, Any], problem: Callable[[Any], str | None], keep: Keep) -> ToolResult:
    """Return a ``tools/call`` result as the journal and the model get it.

    ``{"content": [...], "structured_content": ...}``; of a failed one ``{"error": its text, ...}``, never empty.

    :param problem: says what is wrong with structured content, by the tool's schema
    """
    content = [content_of(block, keep) for block in _blocks(result)]
    given = {"structured_content": result["structuredContent"]} if result.get("structuredContent") is not None else {}
    if result.get("isError"):
        return _failed(content, given)
    wrong = problem(result["structuredContent"]) if given else None
    if wrong is not None:
        text = f"The tool ran, but its structured result is not as its schema says: {wrong}"
        return ToolResult({"error": text, "content": content}, status="error")
    return ToolResult({"content": content, **given})


def _blocks(result: Mapping[str, Any]) -> list[Any]:
    content = result.get("content")
    return content if isinstance(content, list) else []


def _failed(content: list[dict[str, Any]], given: dict[str, Any]) -> ToolResult:
    texts = [block["text"] for block in content if block["type"] == "text" and block.get("text", "").strip()]
    others = [block for block in content if block["type"] != "text"]
    rest = {"content": others} if others else {}
    return ToolResult({"error": "\n".join(texts) or _SILENT, **rest, **given}, status="error")


def content_of(block: Any, keep: Keep) -> dict[str, Any]:
    """Return one block of content."""
    kind = block.get("type") if isinstance(block, Mapping) else None
    match kind:
        case "text" if isinstance(block.get("text"), str):
            return {"type": "text", "text": block["text"]}
        case "image" | "audio":
            return {"type": kind, **_bytes(block.get("mimeType"), block.get("data"), keep)}
        case "resource_link":
            return _link(block)
        case "resource" if isinstance(block.get("resource"), Mapping):
            return resource_content(block["resource"], keep)
        case str():
            return {"type": kind[:_KIND], "note": f"content of a kind that cannot be shown: {kind[:_KIND]}"}
        case _:
            return {"type": "unknown", "note": "content that says no kind"}


def _link(block: Mapping[str, Any]) -> dict[str, Any]:
    link = {"type": "resource_link"}
    link.update({ours: block[theirs] for theirs, ours in _LINKED if isinstance(block.get(theirs), str)})
    return {**link, **_mime(block.get("mimeType")), **_size(block.get("size"))}


def resource_content(content: Mapping[str, Any], keep: Keep) -> dict[str, Any]:
    """Return what a resource holds: its text, or a note of its bytes."""
    uri = {"uri": content["uri"]} if isinstance(content.get("uri"), str) else {}
    if isinstance(content.get("text"), str):
        return {"type": "resource", **uri, **_mime(content.get("mimeType")), "text": content["text"]}
    return {"type": "resource", **uri, **_bytes(content.get("mimeType"), content.get("blob"), keep)}


def _bytes(mime_type: Any, packed: Any, keep: Keep) -> dict[str, Any]:
    try:
        content = base64.b64decode(packed, validate=True)
    except (binascii.Error, ValueError, TypeError):
        return {**_mime(mime_type), "note": "its data is no valid base64, and was left out"}
    digest = sha256(content).hexdigest()
    keep(digest, content)
    return {**_mime(mime_type), "bytes": len(content), "sha256": digest}


def _mime(stated: Any) -> dict[str, Any]:
    return {"mime_type": stated} if isinstance(stated, str) else {}


def _size(stated: Any) -> dict[str, Any]:
    return {"bytes": stated} if isinstance(stated, int) and not isinstance(stated, bool) else {}
