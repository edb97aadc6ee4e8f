"""What an allow list covers."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from engine.net.allow_list import AllowList

__all__ = ()

COVERED = [
    ("wiki.corp", "wiki.corp", 80, [], True),
    ("Wiki.Corp.", "wiki.corp", 9999, [], True),
    ("wiki.corp:8000", "wiki.corp", 80, [], False),
    ("wiki.corp", "evil.wiki.corp", 80, [], False),
    ("10.1.0.0/16", "x", 80, ["10.1.2.3"], True),
    ("10.1.0.0/16", "x", 80, ["10.1.2.3", "10.2.0.1"], False),
    ("10.1.0.0/16", "x", 80, [], False),
    ("10.1.0.0/16:8000", "x", 8000, ["10.1.2.3"], True),
    ("10.1.0.0/16:8000", "x", 80, ["10.1.2.3"], False),
    ("[fd00::1]:8080", "x", 8080, ["fd00::1"], True),
    ("[fd00::1]:8080", "x", 80, ["fd00::1"], False),
    ("fd00::/8", "x", 80, ["fd00::1"], True),
    ("127.0.0.1:81", "127.0.0.1", 81, ["127.0.0.1"], True),
    ("127.0.0.0/8", "x", 80, ["::ffff:127.0.0.1"], False),
    ("", "x", 80, ["8.8.8.8"], False),
]


def test_what_an_allow_list_covers() -> None:
    for entry, host, port, addresses, covered in COVERED:
        allowed = AllowList.of(entry).covers(host, port, [ip_address(each) for each in addresses])
        assert allowed is covered, (entry, host, port)


def test_a_text_has_entries_between_commas_and_white_space() -> None:
    assert AllowList.of(" a, b:1\n10.0.0.0/8 ").entries == ("a", "b:1", "10.0.0.0/8")


def test_what_is_no_entry_is_refused() -> None:
    for entry in ("", "http://x/", "10.0.0.0/99", "a b", ":80", "me@x", "x?y"):
        with pytest.raises(ValueError, match="allow list"):
            AllowList((entry,))
