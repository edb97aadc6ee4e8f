"""Several addresses: the first connection wins, and no loser stays open."""

from __future__ import annotations

import anyio
import pytest

from engine.net.dialling import dial

__all__ = ()

pytestmark = pytest.mark.anyio


class Stream:
    """A connection that knows whether it is open."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.is_open = True

    async def aclose(self) -> None:
        await anyio.lowlevel.checkpoint()
        self.is_open = False


class Network:
    """Addresses that answer, fail, hang, or answer even to whoever has given up waiting."""

    def __init__(self, **how: str) -> None:
        self.how = how
        self.tried: list[str] = []
        self.opened: list[Stream] = []
        self.answer = anyio.Event()

    async def connect(self, address: str) -> Stream:
        self.tried.append(address)
        match self.how[address]:
            case "fails":
                await anyio.lowlevel.checkpoint()
                raise OSError(address)
            case "hangs":
                await anyio.sleep_forever()
            case "stubborn":
                with anyio.CancelScope(shield=True):
                    await self.answer.wait()
            case "answers":
                self.answer.set()
        self.opened.append(Stream(address))
        return self.opened[-1]

    async def dialled(self) -> str:
        return (await dial(self.connect, list(self.how), (OSError,))).address

    @property
    def still_open(self) -> list[str]:
        return [stream.address for stream in self.opened if stream.is_open]


async def test_the_first_that_answers_wins_and_the_others_are_closed() -> None:
    rows: list[tuple[Network, list[str]]] = [
        (Network(a="answers"), ["a"]),
        (Network(a="answers", b="answers"), ["a"]),
        (Network(a="fails", b="fails", c="answers", d="answers"), ["a", "b", "c"]),
        (Network(a="hangs", b="answers"), ["a", "b"]),
        (Network(a="stubborn", b="fails", c="answers"), ["a", "b", "c"]),
    ]
    for network, tried in rows:
        winner = await network.dialled()
        assert (winner, network.tried) == (tried[-1], tried)
        assert network.still_open == [winner]


async def test_where_none_answers_the_last_failure_is_told() -> None:
    for network in (Network(a="fails"), Network(a="fails", b="fails")):
        with pytest.raises(OSError, match=f"^{list(network.how)[-1]}$"):
            await network.dialled()
    with pytest.raises(OSError, match="no address"):
        await dial(Network().connect, [], (OSError,))


async def test_whoever_gives_up_leaves_nothing_open() -> None:
    for how in ("hangs", "stubborn"):
        network = Network(a=how, b=how)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(network.dialled)
            while len(network.tried) < 2:
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
            network.answer.set()
        assert network.tried == ["a", "b"]
        assert network.still_open == []
