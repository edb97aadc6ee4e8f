"""Fetching: only what is public (or allowed), checked on every hop, at the address that was checked."""

from __future__ import annotations

import gzip
import socket
import ssl
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from engine.addresses import AllowList
from engine.public_http import Fetched, FetchError, FetchPolicy, TooLarge, UnsafeAddress, fetch
from tests.engine.web_server import WebServer, endless, raw, redirect, text, web_server

pytestmark = pytest.mark.anyio

INWARD = [
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[64:ff9b::a9fe:a9fe]",
    "[64:ff9b:1::1]",
    "[2002:7f00:1::]",
    "[2001:0:1::1]",
    "[::]",
    "[::1]",
    "0.0.0.0",
    "0",
    "2130706433",
    "0x7f000001",
    "0177.0.0.1",
    "127.1",
    "127.0.0.1.",
    "127.0x1",
    "LOCALHOST",
    "localhost.",
    "a.localhost",
    "100.64.0.1",
    "100.100.100.200",
    "168.63.129.16",
    "[fe80::1%25eth0]",
    "[fe80::1]",
    "[fec0::1]",
    "[fd00::1]",
    "[ff02::1]",
    "[3fff::1]",
    "169.254.169.254",
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "192.88.99.1",
    "198.18.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "１２７.０.０.１",
    "127。0。0。1",
    "①②⑦.0.0.1",
    "ex%61mple.com",
]


class Names:
    """A resolver that knows what it is told, and keeps what it was asked."""

    def __init__(self, **answers: Sequence[Sequence[str]]) -> None:
        self.answers = {name.replace("_", "."): list(lists) for name, lists in answers.items()}
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        answers = self.answers.get(host)
        if not answers:
            raise socket.gaierror(f"unknown: {host}")
        return answers.pop(0) if len(answers) > 1 else answers[0]


def policy(*allow: str, **settings: int | float) -> FetchPolicy:
    return FetchPolicy(allow=AllowList(allow), **settings)  # type: ignore[arg-type]


async def refused(url: str, resolver: Names | None = None, allowed: FetchPolicy | None = None) -> str:
    with pytest.raises(UnsafeAddress) as caught:
        await fetch(url, allowed or FetchPolicy(), resolver or Names())
    return str(caught.value)


@pytest.mark.parametrize("host", INWARD)
async def test_case_api_03_odd_spellings_are_refused_without_asking_a_resolver(host: str) -> None:
    names = Names(localhost=[["127.0.0.1"]])
    await refused(f"http://{host}/", names)
    assert names.asked == []


@pytest.mark.parametrize("host", INWARD)
async def test_case_api_03_odd_spellings_are_refused_by_the_systems_resolver_too(host: str) -> None:
    with pytest.raises(FetchError):
        await fetch(f"https://{host}:443/", FetchPolicy(deadline=5))


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.com/",
        "file:///etc/hostname",
        "gopher://example.com",
        "javascript:alert(1)",
        "example.com",
        "http://",
        "http:///path",
        "http://user:pass@example.com/",
        "http://example.com\\@127.0.0.1/",
        "http://example.com:99999/",
        "http://example.com:0/",
        "http://[::1",
        "http://exa mple.com/",
        "http://example.com:22/",
        "https://example.com:6379/",
    ],
)
async def test_what_is_no_public_web_address_is_refused(url: str) -> None:
    await refused(url, Names(example_com=[["93.184.216.34"]]))


async def test_case_api_02_mixed_answers_are_refused() -> None:
    for answers in (["93.184.216.34", "10.0.0.1"], ["93.184.216.34", "::1"], ["fe80::1%eth0"], ["not an address"]):
        names = Names(mixed_example=[answers])
        with pytest.raises(FetchError):
            await fetch("http://mixed.example/", FetchPolicy(), names)
        assert names.asked == ["mixed.example"]


async def test_case_api_02_the_connection_goes_to_the_address_that_was_checked() -> None:
    with web_server({"/": text("hello")}) as server:
        names = Names(rebind_example=[["127.0.0.1"], ["127.9.9.9"]])
        page = await fetch(f"http://rebind.example:{server.port}/#part", policy("127.0.0.1/32"), names)
        assert page.body == b"hello"
        assert page.url == f"http://rebind.example:{server.port}/"
        assert names.asked == ["rebind.example"]
        assert server.asked[0].headers["host"] == f"rebind.example:{server.port}"
        await refused(f"http://rebind.example:{server.port}/", names, policy("127.0.0.1/32"))
        assert len(server.asked) == 1


async def test_the_next_address_is_tried_where_one_does_not_answer() -> None:
    with web_server({"/": text("hello")}) as server:
        names = Names(two_example=[["127.0.0.2", "127.0.0.1"]])
        page = await fetch(f"http://two.example:{server.port}/", policy("two.example"), names)
        assert page.body == b"hello"


async def test_case_api_02_tls_is_checked_against_the_name_in_the_url(authority: Authority) -> None:
    with web_server({"/": text("hello")}, authority.server) as server:
        names = Names(safe_example=[["127.0.0.1"]], other_example=[["127.0.0.1"]])
        allowed = policy("safe.example", "other.example")
        page = await fetch(f"https://safe.example:{server.port}/", allowed, names, authority.client)
        assert page.body == b"hello"
        for name, trusted in (("other", authority.client), ("safe", None)):
            with pytest.raises(FetchError, match=f"no connection to {name}.example"):
                await fetch(f"https://{name}.example:{server.port}/", allowed, names, trusted)
        assert len(server.asked) == 1


@pytest.mark.parametrize(
    "target",
    [
        "http://127.0.0.1:9/x",
        "//[::1]/x",
        "file:///etc/hostname",
        "http://169.254.169.254/",
        "http://inward.example/",
        "http://0x7f.1/",
    ],
)
async def test_case_api_01_a_redirect_inward_is_not_followed(target: str) -> None:
    with web_server({"/a": redirect(target)}) as server:
        names = Names(files_example=[["127.0.0.1"]], inward_example=[["127.0.0.1"]])
        said = await refused(f"http://files.example:{server.port}/a", names, policy("files.example"))
        assert "etc/hostname" not in said
        assert [asked.path for asked in server.asked] == ["/a"]


async def test_case_api_01_a_loop_stops_at_the_limit() -> None:
    with web_server({"/a": redirect("/a")}) as server:
        names = Names(files_example=[["127.0.0.1"]])
        with pytest.raises(FetchError, match="more than 5 times"):
            await fetch(f"http://files.example:{server.port}/a", policy("files.example"), names)
        assert len(server.asked) == 6
        assert len(names.asked) == 6


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_case_api_01_a_redirect_is_followed_and_carries_nothing_along(status: int) -> None:
    with web_server({"/b": text("there")}) as second:
        pages = {"/a": redirect(f"http://b.example:{second.port}/b", status)}
        with web_server(pages) as first:
            names = Names(a_example=[["127.0.0.1"]], b_example=[["127.0.0.1"]])
            page = await fetch(f"http://a.example:{first.port}/a", policy("a.example", "b.example"), names)
            assert page.body == b"there"
            assert page.url == f"http://b.example:{second.port}/b"
            assert names.asked == ["a.example", "b.example"]
            assert set(second.asked[0].headers) <= {"host", "user-agent", "accept", "accept-encoding", "connection"}


async def test_a_redirect_to_nowhere_is_an_error() -> None:
    with web_server({"/a": redirect(None)}) as server, pytest.raises(FetchError, match="no target"):
        await fetch(f"http://127.0.0.1:{server.port}/a", policy("127.0.0.1"))


async def got(server: WebServer, path: str = "/", **settings: int | float) -> Fetched:
    return await fetch(f"http://127.0.0.1:{server.port}{path}", policy(f"127.0.0.1:{server.port}", **settings))


async def test_a_page_is_had_with_its_type_and_charset() -> None:
    with web_server({"/": text("é", 'Text/HTML; x=1; Charset="UTF-8"')}) as server:
        page = await got(server)
        assert (page.status, page.content_type, page.charset) == (200, "text/html", "UTF-8")
        assert page.body.decode() == "é"
        missing = await got(server, "/none")
        assert (missing.status, missing.body) == (404, b"")


async def test_gzip_is_unpacked_even_in_several_members() -> None:
    packed = gzip.compress(b"one ") + gzip.compress(b"two")
    with web_server({"/": raw(packed, Content_Encoding="gzip")}) as server:
        assert (await got(server)).body == b"one two"


@pytest.mark.parametrize("encoding", ["br", "deflate", "gzip, gzip"])
async def test_an_encoding_that_was_not_asked_for_is_an_error(encoding: str) -> None:
    with web_server({"/": raw(b"x", Content_Encoding=encoding)}) as server, pytest.raises(FetchError):
        await got(server)


async def test_broken_gzip_is_an_error() -> None:
    with web_server({"/": raw(b"nothing packed", Content_Encoding="gzip")}) as server, pytest.raises(FetchError):
        await got(server)


async def test_a_body_may_be_as_large_as_allowed_and_no_larger() -> None:
    with web_server({"/": raw(b"x" * 1000)}) as server:
        assert len((await got(server, largest=1000)).body) == 1000
        with pytest.raises(TooLarge):
            await got(server, largest=999)


async def test_case_truncate_03_an_endless_body_stops_at_the_limit() -> None:
    with web_server({"/": endless(b"x" * 4096)}) as server, pytest.raises(TooLarge):
        await got(server, largest=100_000)


async def test_case_truncate_03_a_gzip_bomb_is_noticed_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = gzip.compress(bytes(200_000_000), 9)
    largest: list[int] = []
    made = zlib.decompressobj

    class Watched:
        def __init__(self, wbits: int) -> None:
            self.inner = made(wbits)
            self.eof, self.unused_data, self.unconsumed_tail = False, b"", b""

        def decompress(self, data: bytes, at_most: int) -> bytes:
            out = self.inner.decompress(data, at_most)
            largest.append(len(out))
            self.unconsumed_tail = self.inner.unconsumed_tail
            return out

    monkeypatch.setattr(zlib, "decompressobj", Watched)
    with web_server({"/": raw(bomb, Content_Encoding="gzip")}) as server, pytest.raises(TooLarge):
        await got(server, largest=1_000_000)
    assert sum(largest) == 1_000_001


async def test_the_deadline_is_for_everything_together() -> None:
    def dripping(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.end_headers()
        request.wfile.write(b"x")
        request.wfile.flush()
        request.connection.settimeout(10)
        # Waits for the client to go away.
        request.rfile.read(1)

    with web_server({"/": dripping}) as server, pytest.raises(FetchError, match=r"longer than 0\.2 s"):
        await got(server, deadline=0.2)


async def test_nobody_there_is_an_error() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        with pytest.raises(FetchError, match="no connection"):
            await fetch(f"http://127.0.0.1:{port}/", policy("127.0.0.1"))
    with pytest.raises(FetchError, match="there is no host gone"):
        await fetch("http://gone.example/", FetchPolicy(), Names())


async def test_a_broken_answer_is_an_error() -> None:
    def broken(request: BaseHTTPRequestHandler) -> None:
        request.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort")
        request.close_connection = True

    with web_server({"/": broken}) as server, pytest.raises(FetchError, match="broke off"):
        await got(server)


async def test_the_environments_proxy_plays_no_part(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with web_server({"/": text("hello")}) as server:
        assert (await got(server)).body == b"hello"


class Authority(msgspec.Struct, frozen=True):
    """A server's certificate for ``safe.example``, and a client that trusts its maker."""

    server: ssl.SSLContext
    client: ssl.SSLContext


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "calljournal tests")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("safe.example")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(Encoding.PEM)
    file = tmp_path / "server.pem"
    file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) + pem)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(file)
    return Authority(server, ssl.create_default_context(cadata=pem.decode()))
