"""Who besides its owner may use a row, and who is in which team."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from events.errors import Refused
from events.keys import require_storable, tenant_column

__all__ = ("Grantee", "Share", "SharedRole")

SharedRole: TypeAlias = Literal["viewer", "editor"]
"""What a row may be shared for: a viewer uses it, an editor may change its actions too."""

_EVERYONE = "*"


class Grantee(msgspec.Struct, frozen=True):
    """To whom a row is shared; made by :meth:`user`, :meth:`team` or :meth:`everyone`.

    :raises Refused: if it names nobody
    """

    kind: Literal["user", "team", "everyone"]
    name: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in ("user", "team", "everyone"):
            raise Refused(f"a row is shared to a user, a team or everyone, not to a {self.kind!r}")
        require_storable(self.name, f"the {self.kind}'s name")
        if self.kind == "team" and not (self.name or "").strip():
            raise Refused("a team needs a name")
        if self.kind == "everyone" and self.name is not None:
            raise Refused("everyone has no name; leave it out")

    @classmethod
    def user(cls, user_id: str | None) -> Grantee:
        """Return a user; None: those who have no id."""
        return cls("user", user_id)

    @classmethod
    def team(cls, name: str) -> Grantee:
        """Return the members of a team, as they are at each moment."""
        return cls("team", name)

    @classmethod
    def everyone(cls) -> Grantee:
        """Return every user of this journal."""
        return cls("everyone")

    @property
    def column(self) -> str:
        """How it stands in the table of shares."""
        if self.kind == "user":
            return tenant_column(self.name)
        return _EVERYONE if self.name is None else self.name

    def __str__(self) -> str:
        return "everyone" if self.kind == "everyone" else f"{self.kind} {self.name!r}"


class Share(msgspec.Struct, frozen=True):
    """One share of a row."""

    grantee: Grantee
    role: SharedRole
