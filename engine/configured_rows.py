"""``engine.rows``: tools configured by their owners, kept in the journal; changed, shared and removed."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, TypeVar, Unpack
from uuid import UUID

from msgspec.structs import replace

from engine.built_ins import BuiltIns
from engine.credentials import Credentials
from engine.defaults import INTERNAL_ID
from engine.offers import Offers
from engine.row_definition import Held, KeptRow, RowVersion
from engine.row_edit import RowChanges, RowEdit, require_label, same
from engine.row_tools import RowTools
from engine.rows import ToolRow
from engine.sharing import Grantee, Share, SharedRole
from engine.teams import Teams
from events.errors import Conflict, Refused
from events.keys import require_storable
from events.persistence import run_to_end
from events.store import Store

__all__ = ("Rows",)

T = TypeVar("T")

_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_CLIENT: Final = re.compile(r"ct\d+")
_DERIVED: Final = 5
"""The version of ids that are made of names, as those of default rows are."""
_TRIES: Final = 100


class Rows:
    """The tool rows in one journal. A change holds at the next call of every worker.

    Each change is a new version; none is ever lost: what was changed meanwhile is read again, and kept. A change
    completes though its caller is cancelled meanwhile. Secrets are sealed for the owner, and never given out.

    :ivar teams: who is in which team
    :ivar built_ins: what users say of the built-in tools that nobody stored
    :ivar offers: rows of others that wait until a user accepts them
    :ivar tools: asks the rows' tools
    :ivar store: the journal's
    """

    def __init__(
        self,
        store: Store,
        tools: RowTools,
        *,
        is_given: Callable[[str], bool] = lambda _: False,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        self.store = store
        self.tools = tools
        self._is_given = is_given
        self._clock = clock or _utc_now
        self.teams = Teams(store)
        self.built_ins = BuiltIns(store, tools)
        self.offers = Offers(store, self._clock)

    def __repr__(self) -> str:
        return f"<Rows of {self.store!r}>"

    async def add(
        self, row: ToolRow, *, user_id: str | None, secrets: Credentials | None = None, by: str | None = None
    ) -> ToolRow:
        """Add a row, and return it as it is kept, without its secrets; :meth:`ToolRow.new` makes one with a new id.

        :param secrets: sealed beside those that stand in the configuration
        :param by: who adds it
        :raises Refused: if its id cannot be used, its tool is not there, or its configuration or what it says of its
            actions is not right; the text says everything that is wrong
        :raises LogUnavailable: if it was not written, or that is not known: then look whether it is there
        """
        from engine.row_changes import insert_row

        self._require_new(row, user_id, by)
        row = replace(row, user_id=user_id, version=1, synthesised=False, client_side=False, credentials=None)
        require_label(row.label)
        self.tools.require_permitted(row)
        row = self.tools.checked(row, _given(secrets))
        await self.tools.check_actions(row)
        now = self._clock()
        return _shown(await self._transact(lambda connection: insert_row(connection, row, now, by)))

    async def get(self, row_id: str, *, user_id: str | None) -> KeptRow:
        """Return a row that a user owns or may use, without its secrets.

        :raises NotFound: if there is none
        :raises LogUnavailable: if it cannot be read
        """
        from engine.row_changes import read_held

        return (await read_held(self.store, user_id, self._stored(row_id, user_id, "looked at"))).shown

    async def edit(
        self,
        row_id: str,
        *,
        user_id: str | None,
        version: int | None = None,
        by: str | None = None,
        **changes: Unpack[RowChanges],
    ) -> ToolRow:
        """Change a row, and return its next version, without its secrets; what is left out stays (see ``RowChanges``).

        Its owner may change everything; whom it is shared to as an editor, its actions only.

        :param version: the version to be changed; None: whichever it is
        :param by: who changes it
        :raises NotFound: if the user may use no such row
        :raises Conflict: if the row is at another version
        :raises Refused: if the user may not, or the row would not be right
        :raises LogUnavailable: if it was not written, or that is not known
        """
        from engine.row_changes import write_row

        require_storable(by, "the name of who changes it")
        edit = RowEdit(**changes)

        async def change(held: Held) -> ToolRow:
            changed = await edit.of(held, self.tools)
            if same(changed, held.row):
                return changed
            now = self._clock()
            return await self._transact(lambda c: write_row(c, user_id, held, changed, now, by))

        return _shown(await self._changed(self._stored(row_id, user_id, "edited"), user_id, version, change))

    async def remove(
        self, row_id: str, *, user_id: str | None, version: int | None = None, by: str | None = None
    ) -> ToolRow:
        """Remove a row, its secrets and its shares, and return it as it was; its versions stay, its id is used up.

        :param version: the version to be removed; None: whichever it is
        :raises NotFound: if the user may use no such row
        :raises Conflict: if the row is at another version
        :raises Refused: if the user does not own it
        :raises LogUnavailable: if that was not written, or is not known
        """
        from engine.row_changes import delete_row

        require_storable(by, "the name of who removes it")

        async def change(held: Held) -> ToolRow:
            if held.role != "owner":
                raise Refused(f"tool row {row_id!r} is shared to you; only its owner removes it")
            now = self._clock()
            return await self._transact(lambda c: delete_row(c, user_id, held, now, by))

        return _shown(await self._changed(self._stored(row_id, user_id, "removed"), user_id, version, change))

    async def versions(self, row_id: str, *, user_id: str | None) -> list[RowVersion]:
        """Return every version of a row, oldest first: to its owner for ever, to others while it is shared to them.

        :raises LogUnavailable: if they cannot be read
        """
        from engine.row_changes import read_row_versions

        return await read_row_versions(self.store, user_id, self._stored(row_id, user_id, "looked at"))

    async def share(self, row_id: str, grantee: Grantee, role: SharedRole = "viewer", *, user_id: str | None) -> Share:
        """Share a row, or give another role to whom it is shared already. Its secrets are used for them, never shown.

        To a user or everyone it is an offer: it is in a user's turns once that user accepts it (``offers``).

        :param user_id: its owner; of a team's, a member
        :raises NotFound: if there is no such row or team for the user
        :raises Refused: if the user does not own it, or shares it to itself
        :raises LogUnavailable: if it was not written, or that is not known
        """
        from engine.share_changes import write_share

        if role not in ("viewer", "editor"):
            raise Refused(f"a row is shared to a viewer or an editor, not to a {role!r}")
        if grantee == Grantee.user(user_id):
            raise Refused("a row is its owner's already; share it to somebody else")
        row_id = self._stored(row_id, user_id, "shared")
        return await self._transact(lambda c: write_share(c, user_id, row_id, grantee, role))

    async def unshare(self, row_id: str, grantee: Grantee, *, user_id: str | None) -> None:
        """End a share.

        :raises NotFound: if the user has no such row, or it is not shared so
        :raises Refused: if the user does not own it
        :raises LogUnavailable: if that was not written, or is not known
        """
        from engine.share_changes import remove_share

        row_id = self._stored(row_id, user_id, "shared")
        await self._transact(lambda c: remove_share(c, user_id, row_id, grantee))

    async def shares(self, row_id: str, *, user_id: str | None) -> list[Share]:
        """Return to whom a row is shared.

        :raises NotFound: if the user may use no such row
        :raises Refused: if the user does not own it
        :raises LogUnavailable: if they cannot be read
        """
        from engine.share_changes import read_shares

        if (await self.get(row_id, user_id=user_id)).role != "owner":
            raise Refused(f"tool row {row_id!r} is shared to you; only its owner sees to whom else")
        return await read_shares(self.store, row_id)

    async def list(self, *, user_id: str | None) -> list[KeptRow]:
        """Return the rows that a user owns, then those shared to it, without their secrets; inactive ones too.

        One that waits until the user accepts it says so.

        :raises LogUnavailable: if they cannot be read
        """
        from engine.row_changes import read_kept

        require_storable(user_id, "the user id")
        return await read_kept(self.store, user_id)

    async def _changed(
        self, row_id: str, user_id: str | None, version: int | None, change: Callable[[Held], Awaitable[ToolRow]]
    ) -> ToolRow:
        """Change a row by what it is; where somebody else was faster, by what it is then."""
        from engine.row_changes import Moved, read_held

        moved: Conflict | None = None
        for _ in range(_TRIES):
            held = await read_held(self.store, user_id, row_id)
            if version not in (None, held.row.version):
                current = held.row.version
                raise Conflict(f"tool row {row_id!r} is at version {current}, not {version}; look at it again")
            try:
                return await change(held)
            except Moved as error:
                moved = error
        raise Conflict(f"tool row {row_id!r} is changed all the time; nothing was done") from moved

    async def _transact(self, work: Callable[[Any], T]) -> T:
        return await run_to_end(partial(self.store.transact, work))

    def _require_new(self, row: ToolRow, user_id: str | None, by: str | None) -> None:
        require_storable(user_id, "the user id")
        require_storable(by, "the name of who adds the row")
        identity = row.id
        if not _ID.fullmatch(identity):
            raise Refused(
                f"the row id {identity!r} cannot be used: at most 100 letters, digits, dots, - and _, the first a "
                "letter or digit; ToolRow.new makes one"
            )
        if (
            _CLIENT.fullmatch(identity)
            or identity == INTERNAL_ID
            or identity.startswith("cli-")
            or _is_derived(identity)
        ):
            raise Refused(f"the row id {identity!r} is kept for tools that nobody stores; give another")
        if self._is_given(identity):
            raise Refused(f"the row id {identity!r} cannot be used: it is, or was, another row's; give another")

    def _stored(self, row_id: str, user_id: str | None, verb: str) -> str:
        """Return the id of a row that may be stored: those of default tools and built-ins never are."""
        require_storable(user_id, "the user id")
        require_storable(row_id, "the row id")
        name = self.tools.built_in(row_id) if row_id == INTERNAL_ID or _is_derived(row_id) else None
        if name is None:
            return row_id
        if name in self.tools.defaults():
            raise Refused(
                f"{name!r} is a default tool: it cannot be {verb}, only be switched off, on, or to asking; add a row "
                "of your own"
            )
        raise Refused(f"row {row_id!r} is of a built-in tool and is not stored, so it cannot be {verb}")


def _utc_now() -> datetime:
    return datetime.now(UTC)


def _shown(row: ToolRow) -> ToolRow:
    return replace(row, credentials=None)


def _given(secrets: Credentials | None) -> Credentials:
    return {key: value for key, value in (secrets or {}).items() if value is not None}


def _is_derived(identity: str) -> bool:
    try:
        return UUID(identity).version == _DERIVED
    except ValueError:
        return False
