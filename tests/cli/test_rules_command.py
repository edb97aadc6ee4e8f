"""``calljournal rules``: an operator's rules from a shell."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import EXAMPLES, Called, check_refused

__all__ = ()

TURN = EXAMPLES / "turn.json"
TOOLS = EXAMPLES / "tools"


@pytest.fixture
def journal(called: Called, database_url: str) -> str:
    assert called("migrate", "--database", database_url).code == 0
    return database_url


def test_rules_are_added_listed_shown_and_revoked(called: Called, journal: str) -> None:
    on = ("--database", journal)
    added = called("rules", "add", "deny", "--tool", "dice*", "--id", "no-dice", "--by", "ops", "--message", "no", *on)
    assert (added.code, added.err) == (0, "")
    (rule,) = added.lines
    assert (rule["id"], rule["version"], rule["verdict"], rule["tool"]) == ("no-dice", 1, "deny", "dice*")
    assert (rule["created_by"], rule["ordinal"]) == ("ops", 10)
    assert called("rules", *on).lines == called("rules", "list", *on).lines == [rule]
    assert called("rules", "list", "--user", "u", *on).lines == []
    assert called("rules", "list", "--everyone", *on).lines == []
    (version,) = called("rules", "show", "no-dice", *on).lines
    assert (version["rule"], version["retired_at"]) == (rule, None)
    revoked = called("rules", "revoke", "no-dice", "--by", "ann", *on)
    assert (revoked.code, revoked.lines) == (0, [rule])
    assert called("rules", *on).lines == []
    assert called("rules", "show", "no-dice", *on).lines[0]["retired_by"] == "ann"
    check_refused(called("rules", "revoke", "no-dice", *on), 2, "no-dice")
    assert called("rules", "show", "another", *on).code == 1


def test_every_condition_can_be_given(called: Called, journal: str) -> None:
    wanted = ("--tool", "b*", "--tool-id", "t1", "--action", "p?y", "--effect", "destroy", "--when", "n > `1`")
    more = ("--conversation", "k", "--watched", "--tenant", "g-*", "--message", "why", "--for", "1d", "--ordinal", "-3")
    added = called("rules", "add", "ask", *wanted, *more, "--everyone", "--database", journal)
    assert added.code == 0, added
    (rule,) = added.lines
    assert {name: rule[name] for name in ("tool", "tool_id", "action", "effect", "predicate")} == {
        "tool": "b*",
        "tool_id": "t1",
        "action": "p?y",
        "effect": "destroy",
        "predicate": "n > `1`",
    }
    assert (rule["conversation_id"], rule["headless"], rule["tenant"], rule["everyone"]) == ("k", False, "g-*", True)
    assert (rule["message"], rule["ordinal"]) == ("why", -3)
    assert rule["expires_at"] > rule["created_at"]
    shown = called("--no-json", "rules", "list", "--everyone", "--database", journal)
    assert "n > `1`" in shown.out


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("add", "perhaps"), "perhaps"),
        (("add", "deny", "--effect", "harmless"), "--effect"),
        (("add", "deny", "--when", "a =="), "JMESPath"),
        (("add", "deny", "--when", "nowhere(a)"), "nowhere"),
        (("add", "deny", "--tenant", "g*"), "tenant"),
        (("add", "deny", "--for", "soon"), "--for"),
        (("add", "deny", "--id", "a b"), "a b"),
        (("add", "deny", "--everyone", "--user", "u"), "--everyone"),
        (("list", "--everyone", "--user", "u"), "--everyone"),
        (("revoke", "none"), "none"),
        (("revoke",), "ID"),
    ],
)
def test_what_makes_no_sense_is_refused(called: Called, journal: str, arguments: tuple[str, ...], word: str) -> None:
    check_refused(called("rules", *arguments, "--database", journal), 2, word)
    assert called("rules", "--database", journal).lines == []


def test_there_must_be_a_journal(called: Called, tmp_path: Path) -> None:
    check_refused(called("rules"), 3, "there is no journal")
    check_refused(called("rules", "add", "deny"), 3, "there is no journal")
    assert list(tmp_path.iterdir()) == []


def test_a_rule_decides_on_the_next_run(called: Called, journal: str) -> None:
    on = ("--tools", TOOLS, "--database", journal)
    added = called("rules", "add", "deny", "--tool", "dice", "--message", "no gambling", "--database", journal)
    assert added.code == 0
    name = f"rule:{added.lines[0]['id']}@1"
    denied = called("run", TURN, "--message", "m1", *on)
    ends = {line["tool_name"]: line for line in denied.lines[1::2]}
    assert (denied.code, ends["dice"]["type"], ends["dice"]["rule"]) == (1, "denied", name)
    assert "no gambling" in ends["dice"]["message"]
    assert called("rules", "revoke", added.lines[0]["id"], "--database", journal).code == 0
    assert called("run", TURN, "--message", "m2", *on).code == 0


def test_people_read_a_table(called: Called, journal: str) -> None:
    assert called("--no-json", "rules", "--database", journal).out == "no rules\n"
    assert called("rules", "add", "deny", "--id", "all", "--database", journal).code == 0
    done = called("--no-json", "rules", "--database", journal)
    assert "every call" in done.out
    assert "all@1" in done.out
    version = called("--no-json", "rules", "show", "all", "--database", journal)
    assert "deny" in version.out
