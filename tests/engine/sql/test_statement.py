"""Statements: their first word, whatever stands before it."""

from __future__ import annotations

import pytest

from engine.sql.errors import SqlError
from engine.sql.statement import Statement


@pytest.mark.parametrize(
    ("text", "keyword"),
    [
        ("select 1", "SELECT"),
        ("  \n\t;;(( sElEcT 1))", "SELECT"),
        ("-- delete\r\n-- more\nVALUES (1)", "VALUES"),
        ("/* a /* nested; delete */ -- */ with x as (select 1) table x", "WITH"),
        ("/*/ */ table t", "TABLE"),
        ("explain(analyze) select 1", "EXPLAIN"),
        ("copy t to program 'id'", "COPY"),
    ],
)
def test_the_first_word_is_found(text: str, keyword: str) -> None:
    assert Statement.of(text).keyword == keyword


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        (" -- only a comment", "empty"),
        ("/* open", "empty"),
        ("; ;", "empty"),
        ("'text'", "no statement"),
        ("$1", "no statement"),
        ("select 1\0; drop table t", "cannot be sent"),
        ("select '\ud800'", "cannot be sent"),
        ("select " + "1" * 100_000, "at most 100,000"),
    ],
)
def test_what_is_none_is_refused(text: str, said: str) -> None:
    with pytest.raises(SqlError, match=said):
        Statement.of(text)


@pytest.mark.parametrize(
    ("check", "passes", "refused"),
    [
        (Statement.require_query, "select with values table show explain", "insert call do begin set copy lock merge"),
        (Statement.require_planned, "select insert update delete merge", "explain create show set"),
        (
            Statement.require_change,
            "insert update delete merge create alter drop do call with select truncate",
            "begin start commit end rollback abort savepoint release prepare execute set reset discard copy fetch load",
        ),
    ],
)
def test_each_action_takes_its_own(check: object, passes: str, refused: str) -> None:
    assert callable(check)
    for word in passes.split():
        check(Statement.of(f"{word} x"))
    for word in refused.split():
        with pytest.raises(SqlError, match=word.upper() if word != "explain" else "without EXPLAIN"):
            check(Statement.of(f"{word} x"))
