"""The page says what the code does."""

from __future__ import annotations

import json
import re

from engine.api.dry_run import dry_run
from engine.api.operation import METHODS, EncodingRule, Operation, Wire
from engine.rows import ToolRow
from tests.pages import code_blocks, page, table

__all__ = ()

PAGE = page("docs/api_tool.md")


def test_the_example_sends_what_the_page_shows() -> None:
    config = json.loads(code_blocks(PAGE, "json")[0])
    arguments = json.loads(re.findall(r"Called with `(.*?)` it sends", PAGE)[0])
    (shown,) = code_blocks(PAGE, "http")
    row = ToolRow(id="t1", name="api_tool", config=config)
    assert str(dry_run(row, "open_dock", arguments)) == shown


def test_every_key_of_an_operation_is_on_the_page() -> None:
    keys = set(re.findall(r"\w+", " ".join(row[0] for row in table(PAGE, "An operation"))))
    assert set(Operation.__struct_fields__) - {"files"} <= keys
    for struct in (Wire, EncodingRule):
        assert all(f'"{name}"' in PAGE for name in struct.__struct_encode_fields__)
    assert all(method in PAGE for method in METHODS)
