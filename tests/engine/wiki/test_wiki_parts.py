"""What a wiki is made of, without a database: paths, links, marks, comparisons."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.text_editing import EditError
from engine.wiki.fence import fenced
from engine.wiki.limits import COMPARED, LINKS, LONGEST_PATH
from engine.wiki.links import relinked, targets
from engine.wiki.paths import ROOT, WikiPath, page_path, wiki_path
from engine.wiki.revisions import Said, compared


def test_a_path_has_one_spelling() -> None:
    spelt = {
        "/guide/setup": "/guide/setup",
        "guide/setup": "/guide/setup",
        "  /guide/./setup ": "/guide/setup",
        "./guide": "/guide",
        "/a..b.txt": "/a..b.txt",
        "/50%_of.it": "/50%_of.it",
        "/cafe\u0301": "/caf\u00e9",
        "/\u0646\u0645\u06cc\u200c\u062e\u0648": "/\u0646\u0645\u06cc\u200c\u062e\u0648",
    }
    for text, path in spelt.items():
        assert wiki_path(text) == WikiPath(path), text
    for text in ("/guide/", "guide/.", " guide/./ "):
        assert wiki_path(text) == WikiPath("/guide", is_directory=True), text
    assert [wiki_path(text) for text in ("/", ".", "./", "/.")] == [ROOT] * 4
    assert wiki_path("/a/b/c").ancestors == ("/a", "/a/b")
    assert (wiki_path("/a/").below, ROOT.below, ROOT.ancestors) == ("/a/", "/", ())


def test_what_is_no_path_is_refused() -> None:
    unfit = ["", "  ", None, 5, ["/a"], "//a", "a//b", "/a//", "..", "/a/../b", "/a/..", "/a /b", "/ a"]
    unfit += [f"/a{each}b" for each in "\0\n\r\t\x1b\x7f\x85\u2028\u202e\u200b\ufeff\ud800\\[]|#"]
    unfit += ["/" + "x" * LONGEST_PATH, "/" + "\u00e9" * (LONGEST_PATH // 2)]
    for text in unfit:
        with pytest.raises(EditError, match="Invalid path"):
            wiki_path(text)
    assert len(wiki_path("/" + "x" * (LONGEST_PATH - 1)).path) == LONGEST_PATH
    with pytest.raises(EditError, match="/guide/ is a directory"):
        page_path("/guide/")


@given(st.text())
def test_a_path_that_is_one_stays_itself(text: str) -> None:
    try:
        path = wiki_path(text)
    except EditError:
        return
    assert wiki_path(path.below if path.is_directory else path.path) == path
    assert targets(f"[[{path.path}]]") == (frozenset() if path.path == "/" else {path.path})


PAGE = """[[a]] and [[/b/c|the label]], [[ d ]], [[e/#part|E]], [[../up]], [[]], [[/]], [a], [[a|x]]
`[[code]]` and ``` [[not a block]]
```sh
[[ -f fenced ]]
```
~~~
[[fenced too]]
~~~
[[f]] [[g[h]] [[two
lines]]
    ```
[[open]]
```
"""


def test_links_are_found_outside_code() -> None:
    assert targets(PAGE) == {"/a", "/b/c", "/d", "/e", "/f", "/not a block", "/open"}
    assert targets("```\n[[never closed]]") == frozenset()
    many = "".join(f"[[p{number}]]" for number in range(LINKS))
    assert len(targets(many + many)) == LINKS
    with pytest.raises(EditError, match=f"has links to {LINKS + 1} pages"):
        targets(many + "[[one more]]")


def test_links_follow_as_they_were_spelt() -> None:
    content = "[[a]] [[/a|A]] [[a/#s|S]] [[ a ]] [[ab]] `[[a]]` [[a/b]]"
    moved = {"/a": "/x/y", "/a/b": "/z"}
    assert relinked(content, moved.get) == "[[x/y]] [[/x/y|A]] [[x/y/#s|S]] [[x/y]] [[ab]] `[[a]]` [[z]]"
    assert relinked(PAGE, lambda path: None) == PAGE


@pytest.mark.parametrize("piece", ["[[", "[[a", "`", "```\n", "[[a|", "~~~", "[[a]]", "]]", "\n    ", "` [["])
def test_no_page_takes_long_to_look_through(piece: str) -> None:
    content = piece * (300_000 // len(piece))
    assert relinked(content, lambda path: None) == content


def test_no_text_gets_out_from_between_the_marks() -> None:
    first, second = fenced("text", "A title"), fenced("text", "A title")
    assert first != second
    found = re.fullmatch(r"What .* marks (\w{16}) .*\n<<<(\w{16}) title: A title\ntext\n(\w{16})>>>", first)
    assert found is not None
    assert len({*found.groups()}) == 1
    forged = fenced(first)
    assert forged.count(forged.rpartition("\n")[2].removesuffix(">>>")) == 3


def test_versions_are_compared() -> None:
    lines = [f"line {number}" for number in range(1, 41)]
    changed = [*lines[:19], "new 20", "new 21", *lines[20:]]
    old, new = Said(3, "t", "\n".join(lines)), Said(5, "t", "\n".join(changed) + "\n")
    assert compared("/p", old, new).split("\n") == [
        "--- /p version 3",
        "+++ /p version 5",
        "@@ -17,7 +17,8 @@",
        " line 17",
        " line 18",
        " line 19",
        "-line 20",
        "+new 20",
        "+new 21",
        " line 21",
        " line 22",
        " line 23",
    ]
    assert compared("/p", old, old) == ""
    gone = compared("/p", Said(1, "t", "a\nb"), Said(2, None, None)).split("\n")
    assert gone[2:] == ["@@ -1,2 +0,0 @@", "-a", "-b"]
    begun = compared("/p", Said(1, "t", ""), Said(2, "t", "@@ -1 +1 @@\n")).split("\n")
    assert begun[2:] == ["@@ -0,0 +1 @@", "+@@ -1 +1 @@"]


def test_versions_that_have_nothing_in_common_are_not_compared_for_ever() -> None:
    side = int(COMPARED**0.5) + 1
    one, other = ("\n".join(f"{name}{number}" for number in range(side)) for name in "ab")
    with pytest.raises(EditError, match="too different to compare"):
        compared("/p", Said(1, "", one), Said(2, "", other))
    # A long page with a short change is no trouble.
    assert compared("/p", Said(1, "", one), Said(2, "", f"{one}\nend")).endswith("\n+end")
