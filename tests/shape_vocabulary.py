"""The words that the shape test knows: what may be a dict, what makes and what changes mutable state."""

from __future__ import annotations

__all__ = ("JSON_CONTENT", "MUTABLE_CALLS", "MUTATORS")

JSON_CONTENT = frozenset(
    {
        "actions",
        "answer",
        "argument",
        "arguments",
        "attributes",
        "body",
        "bucket",
        "buckets",
        "cards",
        "client_tools",
        "config",
        "configuration",
        "content",
        "credentials",
        "data",
        "definition",
        "definitions",
        "document",
        "extra",
        "function",
        "functions",
        "header",
        "headers",
        "json",
        "kwargs",
        "labels",
        "message",
        "messages",
        "meta",
        "metadata",
        "parameter",
        "parameters",
        "payload",
        "payloads",
        "pinned",
        "preset",
        "presets",
        "properties",
        "property",
        "query",
        "record",
        "report",
        "request",
        "requirements",
        "resolved",
        "response",
        "result",
        "results",
        "schema",
        "schemas",
        "sent",
        "settings",
        "shown",
        "statistics",
        "structured",
        "upcast",
        "value",
        "values",
        "wire",
    }
)
"""Words that name what truly is JSON (or keyword arguments): only there may a signature say ``dict[str, Any]``."""

MUTABLE_CALLS = frozenset(
    {
        "BoundedSemaphore",
        "Condition",
        "Counter",
        "Event",
        "Lock",
        "OrderedDict",
        "Queue",
        "RLock",
        "Semaphore",
        "SimpleQueue",
        "WeakKeyDictionary",
        "WeakSet",
        "WeakValueDictionary",
        "bytearray",
        "count",
        "cycle",
        "defaultdict",
        "deque",
        "dict",
        "list",
        "local",
        "set",
    }
)
"""Constructors whose result can be changed."""

MUTATORS = frozenset(
    {
        "add",
        "append",
        "appendleft",
        "clear",
        "discard",
        "extend",
        "insert",
        "pop",
        "popitem",
        "popleft",
        "remove",
        "reverse",
        "setdefault",
        "sort",
        "update",
    }
)
"""Methods that change their object."""
