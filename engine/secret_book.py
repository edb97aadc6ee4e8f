"""What there is to conceal in the calls of each action: found once per row and action, for most of them nothing."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from engine.actions import Action
from engine.concealing import Concealing, holds_secrets
from engine.credentials import CredentialsError, Vault
from engine.opened_rows import has_credentials, opened_credentials, owner_of
from engine.rows import ToolRow
from engine.secret_forms import SecretForms
from engine.write_only import has_write_only
from events.types import Proposed

__all__ = ("SecretBook",)

_KEPT: Final = 4096


class _Known(msgspec.Struct, gc=False):
    """What is known of one action of one row.

    :ivar plain: there is nothing to conceal, whoever calls
    """

    row: ToolRow
    parameters: dict[str, Any]
    plain: bool
    by_owner: dict[str | None, Concealing]


class SecretBook:
    """Finds how the secrets of a call are kept.

    :param vault: opens credentials, and seals
    """

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._known: dict[tuple[str, str], _Known] = {}

    def __repr__(self) -> str:
        return f"<SecretBook of {len(self._known)} actions>"

    def of(self, row: ToolRow, action: Action, user_id: str | None) -> Concealing | None:
        """Return how a call's secrets are kept; None: its row has no credentials, and its schema seals nothing.

        Where the row's credentials do not open, the ``problem`` says so.
        """
        key = (action.tool_id, action.name)
        known = self._known.get(key)
        if known is None or known.parameters is not action.parameters or known.row is not row:
            known = self._learn(key, row, action)
        return None if known.plain else self._concealing(known, user_id)

    def within(self, row: ToolRow, action: Action, proposed: Proposed) -> Concealing | None:
        """Return how the secrets of a call that is in the journal are kept.

        Of one that holds any, there is something to say even if its row has none by now.
        """
        found = self.of(row, action, proposed.user_id)
        if found is None and holds_secrets(proposed.arguments):
            return Concealing(row.id, self._vault, SecretForms({}), None)
        return found

    def _learn(self, key: tuple[str, str], row: ToolRow, action: Action) -> _Known:
        plain = not has_credentials(row) and not has_write_only(action.parameters)
        self._known.pop(key, None)
        while len(self._known) >= _KEPT:
            del self._known[next(iter(self._known))]
        known = self._known[key] = _Known(row, action.parameters, plain, {})
        return known

    def _concealing(self, known: _Known, user_id: str | None) -> Concealing:
        row = known.row
        owner = owner_of(row, user_id)
        found = known.by_owner.get(owner)
        if found is not None:
            return found
        schema = known.parameters if has_write_only(known.parameters) else None
        try:
            forms = SecretForms(opened_credentials(row, self._vault, user_id))
        except CredentialsError as error:
            # Not kept: a key may be added at any time.
            return Concealing(row.id, self._vault, SecretForms({}), schema, str(error))
        found = Concealing(row.id, self._vault, forms, schema)
        while len(known.by_owner) >= _KEPT:
            del known.by_owner[next(iter(known.by_owner))]
        known.by_owner[owner] = found
        return found
