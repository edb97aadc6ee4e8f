"""A name server of the tests' own, and the policies that let a test reach this machine."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from engine.net import AllowList, NetPolicy

__all__ = ("LOCAL", "Names", "policy")

LOCAL = "127.0.0.1"


class Names:
    """A resolver that knows what it is told, answer after answer (the last for ever), and keeps what it was asked.

    In the names of arguments ``_`` stands for ``.``.
    """

    def __init__(self, **answers: Sequence[Sequence[str]]) -> None:
        self.answers = {name.replace("_", "."): list(lists) for name, lists in answers.items()}
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        answers = self.answers.get(host)
        if not answers:
            raise socket.gaierror(f"unknown: {host}")
        return answers.pop(0) if len(answers) > 1 else answers[0]

    @classmethod
    def local(cls, *names: str) -> Names:
        """All of these names are this machine's."""
        return cls(**{name: [[LOCAL]] for name in names})


def policy(*allow: str, **settings: int | float) -> NetPolicy:
    """A policy that allows these besides what is public."""
    return NetPolicy(allow=AllowList(allow), **settings)  # type: ignore[arg-type]
