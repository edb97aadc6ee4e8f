"""Whether two connections lead to one database, by whatever name: so that no row opens the journal's own."""

from __future__ import annotations

from typing import Final

import msgspec

__all__ = ("IDENTITY", "SYSTEM", "Identity")

IDENTITY: Final = (
    "SELECT current_database(), (SELECT oid::bigint FROM pg_database WHERE datname = current_database()),"
    " extract(epoch FROM pg_postmaster_start_time())::text"
)
"""What any user may ask."""

SYSTEM: Final = "SELECT system_identifier::text FROM pg_control_system()"
"""What a cluster and its copies have in common; some servers do not tell everybody."""


class Identity(msgspec.Struct, frozen=True):
    """What a server says of a database.

    :ivar number: the database's own, within its cluster and all copies of that
    :ivar started: when the server was started
    :ivar system: the cluster's identifier; None: it is not told
    """

    name: str
    number: int
    started: str
    system: str | None = None

    def is_same(self, other: Identity) -> bool:
        """Tell whether it is one database; where that is not known, the name decides."""
        if self.system is not None and other.system is not None:
            return self.number == other.number and self.system == other.system
        if self.started == other.started:
            return self.number == other.number
        return self.name == other.name
