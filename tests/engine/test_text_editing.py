"""Edits, paths, arguments and the index of texts that models keep: pure, for every text."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import sqlalchemy
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from hypothesis import example, given
from hypothesis import strategies as st

from engine.migrations.versions import r0001_notes, r0004_light_tools
from engine.schema import notes
from engine.text_arguments import LONGEST_QUERY, flag_in, number_in, query_in, range_in
from engine.text_editing import EditError, TextKind, lines_of
from engine.text_fence import fenced
from engine.text_index import parts_of, signature, sought
from engine.text_path import TextPath

NOTE = TextKind("note", 1000)
FEW = st.text(alphabet="ab\n\\.é", max_size=12)


@given(FEW, FEW, FEW)
@example("aaa", "aa", "x")
@example("a.c", ".", r"\1")
def test_a_piece_is_replaced_literally_where_it_is_alone(content: str, old: str, new: str) -> None:
    places = [at for at in range(len(content)) if old and content.startswith(old, at)]
    if len(places) == 1:
        at = places[0]
        assert NOTE.replaced(content, old, new) == content[:at] + new + content[at + len(old) :]
        return
    with pytest.raises(EditError) as caught:
        NOTE.replaced(content, old, new)
    said = str(caught.value)
    expected = f"occurs {len(places)} times in note" if places else "not found in note" if old else "is required"
    assert expected in said
    if places:
        assert NOTE.replaced(content, old, new, everywhere=True) == content.replace(old, new)


def test_places_beyond_a_hundred_are_not_counted_and_nothing_is_made_that_would_not_be_kept() -> None:
    """A long piece that overlaps itself, or short ones replaced by a long text, cost neither minutes nor gigabytes."""
    page = TextKind("page", 1_000_000)
    for content, old in (("a" * 1_000_000, "a" * 500_000), ("ab" * 500_000, "ab" * 250_000), ("x\n" * 102, "x")):
        with pytest.raises(EditError, match=r"occurs more than 100 times in page \(line 1: .*; and more\)"):
            page.replaced(content, old, "")
    with pytest.raises(EditError, match=r"occurs 100 times in page \(line 1: .*; and 95 more\)"):
        page.replaced("x\n" * 100, "x", "")
    with pytest.raises(EditError, match="Page too long: it would have 1000000000000 bytes"):
        page.replaced("a" * 1_000_000, "a", "b" * 1_000_000, everywhere=True)
    assert page.replaced("a" * 500_000, "a", "é", everywhere=True) == "é" * 500_000


@given(FEW, st.integers(-1, 9), FEW)
def test_lines_are_inserted_before_a_line_or_at_the_end(content: str, line: int, text: str) -> None:
    lines = lines_of(content)
    if not text or not 1 <= line <= len(lines) + 1:
        with pytest.raises(EditError):
            NOTE.inserted(content, line, text)
        return
    after = NOTE.inserted(content, line, text)
    assert after.split("\n")[: line - 1] == lines[: line - 1]
    assert after.endswith("\n".join(lines[line - 1 :]) + "\n" * content.endswith("\n"))
    assert len(after) - len(content) - len(text.removesuffix("\n")) in (0, 1)
    assert NOTE.appended(content, text) == NOTE.inserted(content, len(lines) + 1, text)


@given(FEW, st.integers(-1, 9), st.integers(-1, 9))
def test_a_range_of_lines_ends_at_the_last_one(content: str, first: int, last: int) -> None:
    lines = lines_of(content)
    end = len(lines) if last == -1 else min(last, len(lines))
    if 1 <= first <= end:
        numbered = [f"{number}: {line}" for number, line in enumerate(lines, 1)]
        assert NOTE.numbered(content, first, last) == "\n".join(numbered[first - 1 : end])
        return
    with pytest.raises(EditError, match=rf"Line range out of bounds. Note has {len(lines)} lines\."):
        NOTE.numbered(content, first, last)


def test_an_error_quotes_little_of_a_long_text() -> None:
    long = "x" * 5000 + " needle " + "y" * 5000 + "\n"
    kind = TextKind("file", 10**6)
    for content in (long * 9, long.replace("needle", "Needle")):
        with pytest.raises(EditError) as caught:
            kind.replaced(content, "needle", "")
        assert len(str(caught.value)) < 1000
    with pytest.raises(EditError, match="at most 1000 are kept"):
        NOTE.fitting("é" * 501)


@given(st.text(max_size=60))
@example("/a/./b/")
@example("a/..b/..")
@example("/a/../b")
def test_a_path_has_one_spelling(text: str) -> None:
    try:
        path = TextPath.of(text, 400)
    except EditError:
        return
    assert TextPath.of(path.text, 400) == path
    assert path.text.startswith("/")
    segments = path.as_file.text.split("/")[1:]
    assert path.is_root or not {"", ".", ".."} & set(segments)
    assert path.above == ["/" + "/".join(segments[:end]) for end in range(1, len(segments))]


@given(st.text(max_size=1500), st.data())
@example("x" * 543 + "İstanbul/ß" + "y" * 600, None)
def test_the_index_never_hides_a_text_that_has_the_piece(content: str, data: Any) -> None:
    bounds = sorted(data.draw(st.tuples(*[st.integers(0, len(content))] * 2))) if data else (540, 555)
    wanted = signature(sought(content[slice(*bounds)]))
    parts = [signature(part) for part in parts_of(content)]
    assert any(all(part[name] & word == word for name, word in wanted.items()) for part in parts)


def test_a_piece_is_found_wherever_it_lies_across_parts() -> None:
    content = "".join(chr(97 + number * number // 7 % 26) for number in range(1600))
    parts = [signature(part) for part in parts_of(content)]
    for start, length in itertools.product(range(400, 1100), (3, 33, 60)):
        wanted = signature(sought(content[start : start + length]))
        assert any(all(part[name] & word == word for name, word in wanted.items()) for part in parts), start


def test_the_index_tells_most_texts_apart() -> None:
    words = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "theta")
    texts = [" ".join(each) for each in itertools.permutations(words, 5)]
    wanted = signature(sought("A needle"))
    assert [text for text in texts if all(signature(text.encode())[n] & w == w for n, w in wanted.items())] == []
    # In another directory, a name has the same bits.
    old, new = signature(b"/a/name.md"), signature(b"/other/name.md")
    moved = {name: word | signature(b"/other/")[name] for name, word in old.items()}
    assert all(moved[name] & word == word for name, word in new.items())


def test_a_fence_is_new_every_time() -> None:
    assert fenced("It:", "x", "") != fenced("It:", "x", "")
    assert "\n(nothing)\n" in fenced("It:", "", "(nothing)")


@pytest.mark.parametrize(
    ("read", "value"),
    [
        (query_in, {"query": ""}),
        (query_in, {"query": "\x00 "}),
        (query_in, {"query": "x" * (LONGEST_QUERY + 1)}),
        (query_in, {}),
        (lambda kwargs: flag_in(kwargs, "query"), {"query": "true"}),
        (lambda kwargs: flag_in(kwargs, "query"), {"query": 1}),
        (lambda kwargs: number_in(kwargs, "query"), {"query": True}),
        (lambda kwargs: number_in(kwargs, "query"), {"query": 0}),
        (lambda kwargs: range_in(kwargs, "query"), {"query": [True, 2]}),
        (lambda kwargs: range_in(kwargs, "query"), {"query": (1, 2)}),
    ],
)
def test_arguments_that_no_schema_has_checked_are_refused(read: Any, value: dict[str, Any]) -> None:
    with pytest.raises(EditError, match="query"):
        read(value)


def test_notes_of_an_older_release_are_counted_and_found() -> None:
    with sqlalchemy.create_engine("sqlite://").connect() as connection:
        operations = Operations(MigrationContext.configure(connection))
        r0001_notes.upgrade(operations)
        row = {"tenant": "uada", "tool_id": "t1", "content": "x", "version": 1, "created_at": "", "updated_at": ""}
        table = sqlalchemy.table("notes", *(sqlalchemy.column(each.name) for each in notes.columns))
        connection.execute(sqlalchemy.insert(table), [row | {"title": "a"}, row | {"title": "b"}])
        r0004_light_tools.upgrade(operations)
        sums = connection.exec_driver_sql("SELECT tenant, tool_id, entries FROM tool_ledgers").fetchall()
        assert [tuple(each) for each in sums] == [("uada", "t1", 2)]
        found = connection.exec_driver_sql("SELECT space, key, bits0, bits11 FROM text_index ORDER BY key").fetchall()
        assert [tuple(each) for each in found] == [("notes:t1", key, 2**62 - 1, 2**62 - 1) for key in "ab"]
