"""A tool row with its credentials opened, as its tool is given it; the stored row stays as it is (BEHAVIOUR 130, 131).

They are opened as the row's owner, whoever calls: a shared tool works with its owner's secrets.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from engine.credentials import Credentials, CredentialsError, Vault
from engine.rows import ToolRow
from events.errors import JournalError

__all__ = (
    "CREDENTIALS",
    "LEGACY",
    "has_credentials",
    "opened",
    "opened_credentials",
    "owner_of",
    "without_credentials",
)

CREDENTIALS: Final = "auth_credentials"
"""Under this key a tool finds all its credentials together; each stands at the top of its configuration too."""

LEGACY: Final = "encrypted_credentials"
"""Under this key older rows carry the sealed credentials within their configuration."""


def has_credentials(row: ToolRow) -> bool:
    """Tell whether a row has sealed credentials."""
    return row.credentials is not None or bool(row.config.get(LEGACY))


def owner_of(row: ToolRow, user_id: str | None) -> str | None:
    """Return as whom a row's credentials are opened: its owner, of a row without one whoever calls."""
    return user_id if row.user_id is None else row.user_id


def opened(row: ToolRow, vault: Vault, user_id: str | None) -> ToolRow:
    """Return a row with its credentials merged into its configuration, and nothing sealed left in it.

    :param user_id: who calls
    :raises CredentialsError: if they cannot be opened
    """
    if not has_credentials(row):
        return row
    credentials = opened_credentials(row, vault, user_id)
    bare = without_credentials(row)
    return replace(bare, config={**bare.config, **credentials, CREDENTIALS: credentials})


def opened_credentials(row: ToolRow, vault: Vault, user_id: str | None) -> Credentials:
    """Return a row's credentials.

    :param user_id: who calls
    :raises CredentialsError: if they cannot be opened
    """
    owner, found = owner_of(row, user_id), Credentials()
    legacy: Any = row.config.get(LEGACY) or None
    try:
        for blob in (legacy, row.credentials):
            if blob is not None:
                found.update(vault.open(blob if isinstance(blob, str) else "", owner=owner, row_id=row.id))
    except JournalError as error:
        raise CredentialsError(f"tool {row.name!r} (row {row.id}) could not be loaded: {error}") from error
    return found


def without_credentials(row: ToolRow) -> ToolRow:
    """Return a row as one that has none."""
    config = {key: value for key, value in row.config.items() if key != LEGACY}
    return replace(row, credentials=None, config=config)
