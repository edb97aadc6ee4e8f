"""Web pages as text."""

from __future__ import annotations

import time

import pytest

from engine.readable import decoded, readable_text

PAGE = """
<!doctype html><html><head><title> A &amp; B
  </title><style>p { color: red }</style><script>if (a < b) { alert("x") }</script></head>
<body><nav><ul><li>Home<li>About</ul></nav>
<h1>First</h1><p>One   <b>bold</b>
word.<br>Next line.</p><h2>Second</h2>
<table><tr><th>Name<th>Age</tr><tr><td>Ada<td>36</tr></table>
<img src=x alt="a map"><img src=y><svg><title>icon</title><text>hidden</text></svg>
<template><p>hidden</p></template><p>5 &lt; 6 &copy;</p><!-- hidden --></body></html>
"""


def test_a_page_reads_as_a_reader_would_see_it() -> None:
    page = readable_text(PAGE)
    assert page.title == "A & B"
    assert page.text.split("\n\n") == [
        "- Home\n- About",
        "# First",
        "One bold word.\nNext line.",
        "## Second",
        "| Name | Age\n| Ada | 36",
        "[a map]",
        "5 < 6 ©",
    ]


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("", ""),
        ("plain", "plain"),
        ("a < b", "a < b"),
        ("<p>one<p>two", "one\n\ntwo"),
        ("<b>cut off", "cut off"),
        ("text <![CDATA[x]]> more", "text more"),
        ("text <![if IE]>more<![endif]>", "text more"),
        ("<script>a", ""),
        ("<pre>a\n  b\n</pre><p>c\nd", "a\nb\n\nc d"),
        ("<p>seen</p><noscript>a<noscript>b</noscript>c</noscript><p>too", "seen\n\ntoo"),
        ("&#0;&#xD800;&nosuch;", "\ufffd\ufffd&nosuch;"),
    ],
)
def test_broken_pages_are_read_as_far_as_they_go(html: str, text: str) -> None:
    assert readable_text(html).text == text


@pytest.mark.parametrize(
    "piece", ["<!--", "<", "<a", "<a ", "<![", "<?", "</", "&", "&#x", "<script>", "<a b='", "<title>", "<div>", " \n"]
)
def test_no_page_takes_more_than_its_length_is_worth(piece: str) -> None:
    html = piece * (200_000 // len(piece))
    started = time.thread_time()
    readable_text(html)
    # A quadratic reader takes minutes.
    assert time.thread_time() - started < 10


@pytest.mark.parametrize(
    ("body", "charset", "text"),
    [
        ("é".encode(), None, "é"),
        ("é".encode("latin-1"), "latin-1", "é"),
        ("é".encode("latin-1"), None, "\ufffd"),
        ("é".encode("latin-1"), "no-such-charset", "\ufffd"),
        ("é".encode(), "no\0such", "é"),
        ("é".encode("utf-16"), "utf-8", "é"),
        ("\ufeffé".encode(), "latin-1", "é"),
        ('<META charset="cp1252">é'.encode("cp1252"), None, '<META charset="cp1252">é'),
        (
            '<meta http-equiv=x content="text/html; charset=koi8-r">да'.encode("koi8-r"),
            None,
            '<meta http-equiv=x content="text/html; charset=koi8-r">да',
        ),
        (b"x", "base64", "x"),
    ],
)
def test_a_body_is_decoded(body: bytes, charset: str | None, text: str) -> None:
    assert decoded(body, charset) == text
