"""Which addresses are public, and what an allow list covers."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from engine.addresses import AllowList, is_public

PUBLIC = ["2606:4700::1111", "::ffff:8.8.8.8", "172.32.0.1", "100.128.0.1", "8.8.8.8", "64:ff9b::808:808", "11.0.0.1"]


@pytest.mark.parametrize("address", PUBLIC)
def test_case_api_03_controls_are_public(address: str) -> None:
    assert is_public(ip_address(address))


@pytest.mark.parametrize(
    ("entry", "host", "port", "addresses", "covered"),
    [
        ("wiki.corp", "wiki.corp", 80, [], True),
        ("Wiki.Corp.", "wiki.corp", 9999, [], True),
        ("wiki.corp:8000", "wiki.corp", 80, [], False),
        ("wiki.corp", "evil.wiki.corp", 80, [], False),
        ("10.1.0.0/16", "x", 80, ["10.1.2.3"], True),
        ("10.1.0.0/16", "x", 80, ["10.1.2.3", "10.2.0.1"], False),
        ("10.1.0.0/16", "x", 80, [], False),
        ("[fd00::1]:8080", "x", 8080, ["fd00::1"], True),
        ("[fd00::1]:8080", "x", 80, ["fd00::1"], False),
        ("fd00::/8", "x", 80, ["fd00::1"], True),
        ("127.0.0.1:81", "127.0.0.1", 81, ["127.0.0.1"], True),
    ],
)
def test_what_an_allow_list_covers(entry: str, host: str, port: int, addresses: list[str], covered: bool) -> None:
    assert AllowList((entry,)).covers(host, port, [ip_address(each) for each in addresses]) is covered


@pytest.mark.parametrize("entry", ["", "http://x/", "10.0.0.0/99", "a b", ":80"])
def test_what_is_no_entry_is_refused(entry: str) -> None:
    with pytest.raises(ValueError, match="allow list"):
        AllowList((entry,))
