"""Where a tool keeps what it keeps of users, said once: so that all of it can be listed, exported and erased alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

__all__ = ("Keeping",)


class Keeping(msgspec.Struct, frozen=True, kw_only=True):
    """The tables of one tool, SQLAlchemy's; each has a column ``tenant``.

    :ivar items: a row for each thing as it is
    :ivar past: a row for each version of each; it has a column ``version``
    :ivar item: the column of both that names a thing
    :ivar texts: the columns of the items whose bytes count; ``past_texts``: those of their versions
    :ivar whose: the column of all of them that says which row's it is (and which part of that, see ``tool_space``)
    :ivar derived: tables of what follows from the items, with the same columns: erased with them, and not exported
    :ivar index: the kind under which ``engine.text_index`` has the items; None: it does not
    :ivar hold: (connection, tenant, whose): keeps every change out until the transaction's end; None: the sums of
        ``engine.tool_ledger`` do, and are kept right; then ``whose`` is ``tool_id``
    """

    items: Any
    past: Any
    item: str
    texts: tuple[str, ...]
    past_texts: tuple[str, ...]
    whose: str = "tool_id"
    derived: tuple[Any, ...] = ()
    index: str | None = None
    hold: Callable[[Any, str, str], None] | None = None

    @property
    def tables(self) -> tuple[Any, ...]:
        """All of them, the items' first."""
        return (self.items, self.past, *self.derived)
