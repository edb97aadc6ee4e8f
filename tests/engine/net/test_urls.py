"""Which URLs may be opened at all, and for which reason not."""

from __future__ import annotations

import copy
import pickle

import httpx2
import pytest

from engine.net import NetError, NetPolicy, UnsafeUserUrlError
from engine.net.client import SafeClient
from engine.net.transport2 import client_factory
from tests.engine.net.names import Names, policy

__all__ = ()

pytestmark = pytest.mark.anyio

HOSTS = {
    "not_public": """
        [::ffff:127.0.0.1] [::ffff:7f00:1] [::ffff:169.254.169.254] [::127.0.0.1] [64:ff9b::a9fe:a9fe] [64:ff9b::7f00:1]
        [64:ff9b:1::1] [2002:7f00:1::] [2001:0:1::1] [::] [::1] [0:0:0:0:0:0:0:1] [fe80::1] [fec0::1] [fd00::1]
        [fd00:ec2::254] [ff02::1] [3fff::1] [2001:db8::1] 0.0.0.0 127.0.0.1 127.0.0.1. 127.255.255.254 100.64.0.1
        100.100.100.200 168.63.129.16 169.254.169.254 169.254.170.2 10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1
        192.88.99.1 192.0.0.8 198.18.0.1 224.0.0.1 255.255.255.255 127。0。0。1
    """,
    "address_spelling": """
        0 2130706433 0x7f000001 0X7F000001 0x7f.1 127.1 127.0.1 127.0x1 127.0.0.1.. 017700000001 0177.1 1.2.3.4.5 a.1
    """,
    "local_name": """
        localhost LOCALHOST localhost. a.localhost localhost.localdomain ip6-localhost ip6-loopback metadata
        metadata.google.internal Metadata.Google.Internal.
    """,
    "zone_id": "[fe80::1%25eth0] [fe80::1%eth0] [2606:4700::1111%251]",
    "malformed": """
        0177.0.0.1 127.0.0.256 １２７.０.０.１ ①②⑦.0.0.1 ex%61mple.com -x.example a..example [::1 [127.0.0.1]
        [] a,b.example
    """,
}
URLS = {
    "scheme": (
        "ftp://example.com/",
        "file:///etc/hostname",
        "gopher://x",
        "javascript:alert(1)",
        "x.com",
        "//x.com",
        "",
    ),
    "no_host": ("http://", "http:///path", "https:?x"),
    "userinfo": (
        "http://user:pass@x.com/",
        "http://user@x.com/",
        "http://x.com:80@x.com/",
        "http://x.com\\@127.0.0.1/",
    ),
    "port": tuple(f"http://example.com:{port}/" for port in (22, 25, 6379, 0, 65536, 99999999)),
    "malformed": ("http://[::1", "http://exa\tmple.com/", "http://exa mple.com/", "http://example.com:x/"),
}


def matrix() -> list[tuple[str, str]]:
    hosts = [(f"http://{host}/", reason) for reason, listed in HOSTS.items() for host in listed.split()]
    urls = [(url, reason) for reason, listed in URLS.items() for url in listed]
    return hosts + urls


async def test_case_api_03_each_is_refused_before_any_connection_and_says_why() -> None:
    rows = matrix()
    assert len(rows) > 80
    names = Names(example_com=[["93.184.216.34"]], localhost=[["127.0.0.1"]])
    client = SafeClient(NetPolicy(), names)
    wrong = []
    for url, reason in rows:
        with pytest.raises(UnsafeUserUrlError) as caught:
            await client.request("GET", url)
        if caught.value.reason != reason:
            wrong.append((url, caught.value.reason, reason))
    assert wrong == []
    # Only a port is judged with the addresses in hand: an allow list may be about those.
    assert set(names.asked) == {"example.com"}


async def test_case_api_03_mcps_clients_keep_to_it_too() -> None:
    names = Names(example_com=[["93.184.216.34"]], localhost=[["127.0.0.1"]])
    async with client_factory(NetPolicy(), names)() as client:
        for url, _ in matrix():
            with pytest.raises((UnsafeUserUrlError, httpx2.InvalidURL)):
                await client.get(url)
    assert set(names.asked) == {"example.com"}


async def test_case_api_03_the_systems_resolver_brings_none_of_them_back() -> None:
    client = SafeClient(policy(deadline=5))
    for host in " ".join(HOSTS.values()).split():
        with pytest.raises(NetError):
            await client.request("GET", f"https://{host}:443/")


async def test_case_api_03_names_of_any_script_are_asked_for_as_the_name_servers_know_them() -> None:
    names = Names()
    client = SafeClient(NetPolicy(), names)
    for host in ("münchen.example", "MÜNCHEN.example.", "xn--mnchen-3ya.example", "a_b.example", "例え.テスト"):
        with pytest.raises(NetError, match="there is no host"):
            await client.request("GET", f"http://{host}/")
    assert names.asked == [*["xn--mnchen-3ya.example"] * 3, "a_b.example", "xn--r8jz45g.xn--zckzah"]


async def test_case_api_02_mixed_answers_are_refused() -> None:
    inward = ["10.0.0.1"], ["93.184.216.34", "10.0.0.1"], ["93.184.216.34", "::1"], ["fe80::1%eth0"], ["2002:7f00:1::"]
    for answers in inward:
        names = Names(mixed_example=[answers])
        with pytest.raises(UnsafeUserUrlError, match=r"^mixed\.example is not, or not only, at a public address$"):
            await SafeClient(NetPolicy(), names).request("GET", "http://mixed.example/")
        assert names.asked == ["mixed.example"]
    with pytest.raises(NetError, match="there is no host"):
        await SafeClient(NetPolicy(), Names(x_example=[["93.184.216.34", "nonsense"]])).request(
            "GET", "http://x.example/"
        )


async def test_only_the_schemes_of_the_policy_are_allowed() -> None:
    client = SafeClient(NetPolicy(schemes=frozenset({"https"})), Names())
    with pytest.raises(UnsafeUserUrlError, match=r"^only https are allowed, not http$"):
        await client.request("GET", "http://example.com/")
    with pytest.raises(NetError, match="there is no host"):
        await client.request("GET", "https://example.com/")


def test_the_error_is_a_value_error_and_survives_a_copy() -> None:
    error = UnsafeUserUrlError("port", "port 22 is not allowed")
    assert isinstance(error, ValueError)
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (again.reason, str(again), again.code) == ("port", str(error), "unsafe_url")
