"""JSON content with its texts changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ("with_texts",)


def with_texts(
    content: Any,
    change: Callable[[str], Any],
    change_key: Callable[[str], str],
    change_number: Callable[[int], Any] | None = None,
) -> Any:
    """Return JSON content, however deep, with every text changed, keys by ``change_key``; ``content`` itself is not.

    :param change_number: for whole numbers; None: they stay
    """
    top = [content]
    waiting: list[Any] = [top]
    while waiting:
        holder = waiting.pop()
        for place, item in list(holder.items() if type(holder) is dict else enumerate(holder)):
            if type(item) is str:
                holder[place] = change(item)
            elif type(item) is int and change_number is not None:
                holder[place] = change_number(item)
            elif type(item) is dict:
                holder[place] = {change_key(key): inner for key, inner in item.items()}
                waiting.append(holder[place])
            elif type(item) is list:
                holder[place] = list(item)
                waiting.append(holder[place])
    return top[0]
