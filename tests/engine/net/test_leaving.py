"""A request that is cancelled at any of its awaits takes nothing with it: the next one is well."""

from __future__ import annotations

import gzip

import pytest

from engine.net.transport2 import client_factory
from tests.engine.cancelling import CANCELLERS, cut_at
from tests.engine.net.clients import client_of
from tests.engine.net.names import LOCAL, Names, policy
from tests.engine.web_server import raw, redirect, web_server

__all__ = ()

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("keeps_alive", [False, True])
async def test_cancelled_at_every_await(keeps_alive: bool, anyio_backend_name: str) -> None:
    body = bytes(200_000)
    pages = {"/a": redirect("/b"), "/b": raw(gzip.compress(body, 1), Content_Encoding="gzip")}
    names = Names(a_example=[[LOCAL, "127.0.0.2"]])
    with web_server(pages, keeps_alive=keeps_alive) as server:
        url = f"http://a.example:{server.port}/a"
        async with client_of(policy("a.example", connections=1), names) as client:

            async def request(_: int) -> None:
                assert (await client.request("GET", url, follow=True)).body == body

            async def is_well(_: int) -> None:
                assert (await client.request("GET", url, follow=True, deadline=10)).body == body

            for canceller in cancellers(anyio_backend_name):
                assert await cut_at(CANCELLERS[canceller], request, is_well) > 5
            assert "0 in use" in repr(client)


async def test_mcps_client_cancelled_at_every_await(anyio_backend_name: str) -> None:
    names = Names(a_example=[[LOCAL, "127.0.0.2"]])
    with web_server({"/": raw(bytes(200_000))}, keeps_alive=True) as server:
        url = f"http://a.example:{server.port}/"
        async with client_factory(policy("a.example", connections=1, deadline=10), names)() as client:

            async def request(_: int) -> None:
                assert (await client.get(url)).content == bytes(200_000)

            for canceller in cancellers(anyio_backend_name):
                assert await cut_at(CANCELLERS[canceller], request, request) > 3


def cancellers(backend: str) -> list[str]:
    return list(CANCELLERS) if backend == "asyncio" else ["scope"]
