"""Names that end as secrets' names do, whatever stands before: ``api_key``, ``X-Auth-Token``.

Of names that no tool declares to be secret: what is found so is in no fingerprint, and in no setting of an action.
"""

from __future__ import annotations

from typing import Final

__all__ = ("ends_as_secret",)

_ENDS: Final = (
    "secret",
    "password",
    "passwd",
    "passphrase",
    "token",
    "apikey",
    "credential",
    "credentials",
    "privatekey",
    "authorization",
    "cookie",
)


def ends_as_secret(name: str) -> bool:
    """Tell whether a name ends as secrets' names do; case, hyphens and underscores play no part."""
    return name.lower().replace("_", "").replace("-", "").endswith(_ENDS)
