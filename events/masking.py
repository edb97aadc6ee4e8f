"""What people are shown in the place of a value that is stored sealed."""

from __future__ import annotations

import re
from typing import Any, Final

__all__ = ("MASK", "SEALED_VALUE", "is_sealed", "masked")

MASK: Final = "***"

SEALED_VALUE: Final = "cjv1"
"""How every sealed value begins: this, the id of its key, and the ciphertext in base64url, joined by full stops."""

_SEALED: Final = re.compile(rf"{SEALED_VALUE}\.[A-Za-z0-9_-]{{1,32}}\.[A-Za-z0-9_-]+")


def is_sealed(value: object) -> bool:
    """Tell whether a value is text in the form of a sealed one."""
    return type(value) is str and value.startswith(SEALED_VALUE) and _SEALED.fullmatch(value) is not None


def masked(content: Any) -> Any:
    """Return JSON content with ``***`` for each sealed value; the same object where there is none."""
    if type(content) is str:
        return MASK if is_sealed(content) else content
    if type(content) is dict:
        values: Any = {key: masked(item) for key, item in content.items()}
        return content if all(values[key] is item for key, item in content.items()) else values
    if type(content) is list:
        values = [masked(item) for item in content]
        return content if all(new is item for new, item in zip(values, content, strict=True)) else values
    return content
