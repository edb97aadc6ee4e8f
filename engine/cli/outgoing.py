"""Where the requests of tools may go when the command line runs them."""

from __future__ import annotations

import os
from typing import Final

from engine.net.allow_list import AllowList
from engine.net.policy import NetPolicy
from events.errors import Refused

__all__ = ("ALLOW_HOSTS", "outgoing_policy")

ALLOW_HOSTS: Final = "CALLJOURNAL_ALLOW_HOSTS"
"""The environment's variable: hosts, addresses and networks, between commas or blanks, allowed though not public."""


def outgoing_policy() -> NetPolicy:
    """Return the policy that the environment says; without it, public addresses only.

    :raises Refused: if what it allows is no list of hosts, addresses and networks
    """
    try:
        return NetPolicy(allow=AllowList.of(os.environ.get(ALLOW_HOSTS, "")))
    except ValueError as error:
        raise Refused(f"${ALLOW_HOSTS}: {error}") from None
