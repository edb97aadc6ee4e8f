"""The JSON form of everything a tool can return, and what text loses on the way."""

from __future__ import annotations

import dataclasses
import json
from collections import OrderedDict, deque, namedtuple
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, StrEnum
from itertools import count
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any
from uuid import UUID

import msgspec
import pytest
from pydantic import BaseModel, SecretStr

from engine.cleaning import RESULT_TEXT, STORABLE_TEXT
from engine.jsonform import LISTED, NoJsonForm, is_plain, json_form
from events.errors import Refused

Point = namedtuple("Point", "x y")


class Colour(Enum):
    RED = "red"


class Mode(StrEnum):
    FAST = "fast"


@dataclasses.dataclass
class Parcel:
    weight: Decimal
    tags: set[str]


class Bay(msgspec.Struct, tag="bay", rename="camel", omit_defaults=True):
    dock_number: int
    free_at: datetime | None = None
    notes: list[str] = []


class Order(BaseModel):
    number: int
    due: date
    token: SecretStr


class Grid:
    """Looks like a numpy array."""

    dtype = "float64"

    def tolist(self) -> list[list[float]]:
        return [[1.0, float("nan")]]


class Bare:
    pass


class Worded:
    def __str__(self) -> str:
        return "forty\x00-two"


class Broken:
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Text(str):
    """Text of a class of its own."""


FORMS: list[tuple[Any, Any]] = [
    (float("nan"), None),
    (float("-inf"), None),
    ({"loss": float("inf"), "n": 3}, {"loss": None, "n": 3}),
    (10**40, 10**40),
    (-(10**40), -(10**40)),
    (datetime(2024, 5, 1, 12, tzinfo=UTC), "2024-05-01T12:00:00Z"),
    (datetime(2024, 5, 1, 12), "2024-05-01T12:00:00"),
    (date(2024, 5, 1), "2024-05-01"),
    (time(1, 2, 3), "01:02:03"),
    (timedelta(days=1, seconds=2), "P1DT2S"),
    (Decimal("1.10"), "1.10"),
    (UUID(int=7), "00000000-0000-0000-0000-000000000007"),
    (b"\x00\x01", "AAE="),
    (bytearray(b"\x00\x01"), "AAE="),
    (memoryview(b"\x00\x01"), "AAE="),
    ({"c", "a", "b"}, ["a", "b", "c"]),
    (frozenset({3, 1, 2}), [1, 2, 3]),
    ({1, "a", None}, ["a", 1, None]),
    ((1, (2,)), [1, [2]]),
    (Point(1, 2), [1, 2]),
    (deque([1, 2]), [1, 2]),
    (range(3), [0, 1, 2]),
    (OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
    (MappingProxyType({"a": 1}), {"a": 1}),
    ({"a": 1}.keys(), ["a"]),
    ({"a": 1}.values(), [1]),
    (PurePosixPath("/srv/x"), "/srv/x"),
    (Colour.RED, "red"),
    (Mode.FAST, "fast"),
    (Text("own"), "own"),
    (Parcel(Decimal(2), {"b", "a"}), {"weight": "2", "tags": ["a", "b"]}),
    (Bay(4), {"type": "bay", "dockNumber": 4}),
    ([Bay(4, notes=["x"]), object], [{"type": "bay", "dockNumber": 4, "notes": ["x"]}, "object"]),
    (
        Order(number=1, due=date(2024, 5, 1), token=SecretStr("hush")),
        {"number": 1, "due": "2024-05-01", "token": "**********"},
    ),
    (Grid(), [[1.0, None]]),
    (ValueError("boom"), {"type": "ValueError", "message": "boom"}),
    (
        ExceptionGroup("two", [KeyError("k")]),
        {
            "type": "ExceptionGroup",
            "message": "two (1 sub-exception)",
            "exceptions": [{"type": "KeyError", "message": "'k'"}],
        },
    ),
    ((each * 2 for each in (1, 2)), [2, 4]),
    (iter([Decimal(1)]), ["1"]),
    (msgspec.Raw(b'{"a":[1]}'), {"a": [1]}),
    (1j, "1j"),
    (Bare(), "<Bare>"),
    (Worded(), "forty\x00-two"),
    (Broken(), "<Broken>"),
    (len, "<len>"),
    ("\ud83d\ude00 \udc00", "\N{GRINNING FACE} \ufffd"),
    ({"\ud800": "\ud800"}, {"\ufffd": "\ufffd"}),
]


@pytest.mark.parametrize(("value", "form"), FORMS, ids=lambda each: type(each).__name__)
def test_the_form_is_what_the_table_says_and_is_json(value: Any, form: Any) -> None:
    got = json_form(value)
    assert got == form
    assert type(got) is type(form)
    json.loads(json.dumps(got, allow_nan=False))
    assert is_plain(got)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (1, "1"),
        (True, "true"),
        (None, "null"),
        (1.5, "1.5"),
        (date(2024, 5, 1), "2024-05-01"),
        (Colour.RED, "red"),
        ((1, "a"), '[1,"a"]'),
        (b"x", "eA=="),
        (UUID(int=7), "00000000-0000-0000-0000-000000000007"),
    ],
)
def test_keys_become_text(key: Any, text: str) -> None:
    assert json_form({key: 0}) == {text: 0}


def test_no_value_is_lost_when_keys_become_alike() -> None:
    assert json_form({1: "a", "1": "b", "1#2": "c"}) == {"1": "a", "1#2": "b", "1#2#2": "c"}
    assert json_form({"a\x00": 1, "a": 2}, STORABLE_TEXT) == {"a": 1, "a#2": 2}


def test_json_content_is_returned_as_the_same_object() -> None:
    content = {"a": [1, 2.5, None, True, "x\n\t\r\\b\\u0000"], "b": {"c": []}}
    for rule in (RESULT_TEXT, STORABLE_TEXT):
        assert json_form(content, rule) is content


def test_what_is_formed_anew_leaves_the_value_as_it_was() -> None:
    inner = ["a\x00", Decimal(1)]
    value = {"k": inner}
    assert json_form(value, RESULT_TEXT) == {"k": ["a", "1"]}
    assert value == {"k": inner}
    assert inner == ["a\x00", Decimal(1)]


def _cyclic() -> list[Any]:
    ring: list[Any] = []
    ring.append({"again": ring})
    mapping: dict[str, Any] = {}
    mapping["self"] = (mapping,)
    return [ring, mapping]


@pytest.mark.parametrize("value", _cyclic(), ids=["list", "dict"])
def test_a_value_that_holds_itself_is_an_error_not_a_hang(value: Any) -> None:
    with pytest.raises(NoJsonForm, match="holds itself") as caught:
        json_form(value)
    assert isinstance(caught.value, Refused)
    assert isinstance(caught.value, ValueError)


def test_the_same_object_twice_is_no_cycle() -> None:
    shared = [Decimal(1)]
    assert json_form([shared, shared]) == [["1"], ["1"]]


def test_what_is_nested_too_deeply_is_an_error() -> None:
    deep: Any = Decimal(1)
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(NoJsonForm, match="nested too deeply"):
        json_form(deep)


def test_an_endless_iterator_is_listed_up_to_a_bound() -> None:
    listed = json_form(count())
    assert len(listed) == LISTED + 1
    assert listed[LISTED - 1] == LISTED - 1
    assert listed[LISTED] == {"truncated": True, "listed": LISTED}


def test_an_iterator_of_exactly_the_bound_is_whole() -> None:
    assert json_form(iter(range(LISTED))) == list(range(LISTED))


def test_an_error_of_the_tools_own_iterator_is_the_tools_error() -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise ArithmeticError("lost count")

    with pytest.raises(ArithmeticError, match="lost count"):
        json_form(broken())


def test_encoded_json_that_is_not_valid_never_gets_in() -> None:
    with pytest.raises(NoJsonForm, match="not valid"):
        json_form([msgspec.Raw(b"{oops")])


def test_sets_have_one_order_whatever_the_process() -> None:
    members = [f"m{number}" for number in range(50)]
    assert json_form({"s": set(members)}) == {"s": sorted(members)}


@pytest.mark.parametrize(
    ("encoded", "touched"),
    [
        (b'"a"', False),
        (b'"\\n\\t\\r\\"\\\\"', False),
        (b'"C:\\\\bin\\\\fonts"', False),
        (b'"\\\\u0000"', False),
        (b'"\\\\\\u0000"', True),
        (b'"\\b"', True),
        (b'"\\f"', True),
        (b'"\\u001f"', True),
        (b'"\x7f"', True),
        (b'{"\\u0001":1}', True),
    ],
)
def test_encoded_json_shows_whether_it_holds_control_characters(encoded: bytes, touched: bool) -> None:
    assert RESULT_TEXT.touches(encoded) is touched
