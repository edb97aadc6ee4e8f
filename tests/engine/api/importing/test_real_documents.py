"""GitHub's document and ten others: every operation becomes an action, whole and in time; the page has the figures."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest

from engine.api.importing import import_openapi
from engine.api.importing.openapi import METHODS
from engine.schemas import prepare
from tests.engine.api.importing.documents import sound
from tests.engine.api.importing.packages import DOCUMENTS, read_document
from tests.pages import page, table

pytestmark = [pytest.mark.soak, pytest.mark.timeout(300)]

BASE_URL = "https://api.example"
"""For the documents whose servers are relative."""

SECONDS = 10.0
"""Within which each of them is imported, parsing included."""


def operations_of(content: Any) -> int:
    return sum(method in METHODS for item in content["paths"].values() for method in item)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_operation_of_a_real_document_becomes_an_action(name: str) -> None:
    content = read_document(name)
    started = time.perf_counter()
    result = import_openapi(content, base_url=BASE_URL)
    seconds = time.perf_counter() - started
    actions = sound(result)
    assert len(actions) + len(result.skipped) == operations_of(msgspec.json.decode(content))
    assert [(skipped.operation, skipped.reason) for skipped in result.skipped] == []
    assert seconds < SECONDS
    for family in ("openai", "anthropic", "google"):
        assert len(prepare(actions, family).names) == len(actions)
    figures = {row[0]: list(row[1:3]) for row in table(page("docs/api_import.md"), "Figures")}
    assert figures[name] == [str(len(actions)), str(len(result.skipped))]


def test_the_page_lists_just_these() -> None:
    assert [row[0] for row in table(page("docs/api_import.md"), "Figures")] == list(DOCUMENTS)
